// SPDX-License-Identifier: MIT
// Writes the rows of a finished block of bf16 products to C. A file that includes this header must be compiled for
// AVX-512 with bf16, and must include <immintrin.h> before this header. All functions of this header are local to that
// file. If they were not, the linker could use their copies for AVX-512 in the whole program.

namespace masquerade {
namespace {

// Returns a mask of the first `count` of 32 elements; none if count <= 0, all if count >= 32.
inline __mmask32 first_of_32(std::int64_t count) {
    return count >= 32 ? 0xffffffffu : count <= 0 ? 0u : (1u << count) - 1;
}

inline __m512 widen(__m256i bits) {
    typedef std::uint16_t Sixteen __attribute__((vector_size(32)));
    typedef std::uint32_t Words __attribute__((vector_size(64)));
    return (__m512)(__builtin_convertvector((Sixteen)bits, Words) << 16);
}

class RowWriter {
  public:
    // If f is null, there is nothing to write.
    explicit RowWriter(const Bf16Finish* f) {
        if (!f) return;
        bf16_ = f->c.dtype == DType::bf16, add_ = bf16_ && f->c.add;
        std::int64_t size = bf16_ ? 2 : 4;
        block_ = f->block;
        to_ = static_cast<char*>(f->c.data) + (f->at.row * f->c.row + f->at.column) * size;
        to_row_ = f->c.row * size;
        rows_ = f->at.rows;
        there_ = first_of_32(f->at.columns);
        if (!bf16_ || !f->c.bias) return;
        const float* bias = static_cast<const float*>(f->c.bias) + f->at.column;
        bias_low_ = _mm512_maskz_loadu_ps(__mmask16(there_), bias);
        bias_high_ = _mm512_maskz_loadu_ps(__mmask16(there_ >> 16), bias + 16);
    }
    std::int64_t rows() const { return rows_; }

    // Writes the next `count` rows, or all remaining rows if there are fewer. If C is bf16, adds the bias and the old C
    // (if `add` is set), then rounds to the nearest bf16, ties to even; NaN stays NaN, and denormals become zero. If C
    // is f32, the block already contains the bias and the old C.
    void write(std::int64_t count) {
        for (; count > 0 && rows_ > 0; count--, rows_--, to_ += to_row_, block_ += 32) {
            __m512 low = _mm512_load_ps(block_), high = _mm512_load_ps(block_ + 16);
            if (!bf16_) {
                _mm512_mask_storeu_ps(to_, __mmask16(there_), low);
                _mm512_mask_storeu_ps(to_ + 64, __mmask16(there_ >> 16), high);
                continue;
            }
            low += bias_low_, high += bias_high_;
            if (add_) {
                low += widen(_mm256_maskz_loadu_epi16(__mmask16(there_), to_));
                high += widen(_mm256_maskz_loadu_epi16(__mmask16(there_ >> 16), to_ + 32));
            }
            _mm512_mask_storeu_epi16(to_, there_, (__m512i)_mm512_cvtne2ps_pbh(high, low));
        }
    }

  private:
    const float* block_ = nullptr;
    char* to_ = nullptr;
    std::int64_t to_row_ = 0, rows_ = 0;
    __mmask32 there_ = 0;
    bool bf16_ = false, add_ = false;
    __m512 bias_low_ = _mm512_setzero_ps(), bias_high_ = _mm512_setzero_ps();
};

}  // namespace
}  // namespace masquerade
