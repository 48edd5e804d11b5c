// SPDX-License-Identifier: MIT
// The matrix product of the CPU engine.
//
// Every element of C is computed by the same chain of multiply-adds over k = 0, 1, ..., whatever M, N, the number of
// threads and the position of the element are. Its bits depend only on its row of A, its column of B and the
// instruction set. Two bf16 factors are multiplied in bf16 arithmetic if the machine has it (see bf16_form()).
#pragma once
#include "engine/tensor/view.h"

#include <cstdint>

namespace masquerade {

// K is always cut into blocks of this depth. Within a block, every element of C has one running sum. The sums of the
// blocks are added in order.
constexpr std::int64_t gemm_depth = 320;

// A matrix to read, f32 or bf16: element (i, j) is at data[i * row + j * column].
struct Factor {
    const void* data;
    DType dtype;
    std::int64_t row, column;
};

inline Factor factor(const View& v) { return {v.data, v.dtype, v.columns(), 1}; }
inline Factor transposed(Factor f) { return {f.data, f.dtype, f.column, f.row}; }

// A function f that is called for each part of C when this part is complete: f(m0, m1, n0, n1) for rows m0 to m1 and
// columns n0 to n1. The thread that has written the part calls f while the part is in a near cache. Every element
// belongs to exactly one part. f must outlive the product. If f reads or writes another matrix of C's shape, `beside`
// is this matrix, and the same part of it is prefetched.
class Epilogue {
  public:
    Epilogue() = default;
    template <class F>
    explicit Epilogue(const F& f, const Factor& matrix = {})
        : beside(matrix),
          f_(&f),
          run_([](const void* p, std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1) {
              (*static_cast<const F*>(p))(m0, m1, n0, n1);
          }) {}
    explicit operator bool() const { return run_ != nullptr; }
    void operator()(std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1) const {
        run_(f_, m0, m1, n0, n1);
    }

    Factor beside = {};

  private:
    const void* f_ = nullptr;
    void (*run_)(const void*, std::int64_t, std::int64_t, std::int64_t, std::int64_t) = nullptr;
};

// The matrix to write, f32 or bf16: element (i, j) is at data[i * row + j].
struct Product {
    void* data;
    DType dtype;
    std::int64_t row;
    bool add = false;             // add to C instead of storing
    const float* bias = nullptr;  // (N), added to every row
    Epilogue then = {};
};

inline Product product(const View& v, bool add = false) { return {v.data, v.dtype, v.columns(), add, nullptr, {}}; }

// C(M,N) = A(M,K) B(K,N) (+ C) (+ bias), then the epilogue. Memory is allocated only if the product is larger than all
// earlier products of a thread.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, Factor a, Factor b, Product c);

// The instruction set of products: "avx512", "avx2" or "generic". The default is the best that the machine has; tests
// set others, between products. The bits of two instruction sets differ. set_instruction_set() returns false, and
// changes nothing, if the machine or the compiler does not have the instruction set.
const char* instruction_set();
bool set_instruction_set(const char* name);

// The way in which two bf16 factors are multiplied: "amx" or "avx512_bf16" (products of pairs, sums in float) or
// "widened" (both are converted to float). The default is the fastest form that the machine has; it is always "widened"
// if the instruction set is not "avx512". The bits of two forms differ. set_bf16_form() returns false, and changes
// nothing, if the machine does not have the form.
const char* bf16_form();
bool set_bf16_form(const char* name);

}  // namespace masquerade
