// SPDX-License-Identifier: MIT
// Rows of a finished block of bf16 products on their way to C; local to the file that includes it, which has
// included <immintrin.h> and is compiled for AVX-512 with bf16 (gemm_block.h says why).

namespace masquerade {
namespace {

// The first `count` of 32 elements; none and all beyond the ends.
inline __mmask32 first_of_32(std::int64_t count) {
    return count >= 32 ? 0xffffffffu : count <= 0 ? 0u : (1u << count) - 1;
}

class RowWriter {
  public:
    // Null: nothing to write.
    explicit RowWriter(const Bf16Finish* f) {
        if (!f) return;
        std::int64_t size = f->c.dtype == DType::bf16 ? 2 : 4;
        block_ = f->block;
        to_ = static_cast<char*>(f->c.data) + (f->at.row * f->c.row + f->at.column) * size;
        to_row_ = f->c.row * size;
        rows_ = f->at.rows;
        there_ = first_of_32(f->at.columns);
        bf16_ = f->c.dtype == DType::bf16;
    }
    std::int64_t rows() const { return rows_; }

    // The next `count` rows, if there are so many. To bf16: rounded to nearest even; NaN stays NaN, and a
    // denormal becomes zero.
    void write(std::int64_t count) {
        for (; count > 0 && rows_ > 0; count--, rows_--, to_ += to_row_, block_ += 32) {
            __m512 low = _mm512_load_ps(block_), high = _mm512_load_ps(block_ + 16);
            if (bf16_) {
                _mm512_mask_storeu_epi16(to_, there_, (__m512i)_mm512_cvtne2ps_pbh(high, low));
            } else {
                _mm512_mask_storeu_ps(to_, __mmask16(there_), low);
                _mm512_mask_storeu_ps(to_ + 64, __mmask16(there_ >> 16), high);
            }
        }
    }

  private:
    const float* block_ = nullptr;
    char* to_ = nullptr;
    std::int64_t to_row_ = 0, rows_ = 0;
    __mmask32 there_ = 0;
    bool bf16_ = false;
};

}  // namespace
}  // namespace masquerade
