// SPDX-License-Identifier: MIT
// The matrix product of the CPU engine.
//
// Every element of C = A B is computed by the same chain of multiply-adds over k = 0, 1, ... This chain does not depend
// on M, N, the number of threads or the position of the element. The bits of an element therefore depend only on its
// row of A, its column of B, the instruction set and, if both factors are bf16, on bf16_form(). Two bf16 factors are
// multiplied with bf16 instructions if the machine has them.
#pragma once
#include "engine/tensor/packed_copy.h"
#include "engine/tensor/view.h"

#include <cstdint>

namespace masquerade {

// If a product is computed in float, the sum over K is cut into blocks of this depth; the last block may be shorter.
// Within a block, every element of C has one running sum. The sums of the blocks are added in order. Products with bf16
// instructions (gemm_bf16.h) and products of f64 or c128 do not use these blocks.
constexpr std::int64_t gemm_depth = 320;

// A matrix to read, which is stored by rows (column is 1) or by columns (row is 1): element (i, j) is at
// data[i * row + j * column].
struct Factor {
    const void* data;
    DType dtype;
    std::int64_t row, column;
    PackedCopy* packed = nullptr;  // not null: gemm() may keep a packed copy there, because the matrix does not change
};

inline Factor factor(const View& v) { return {v.data, v.dtype, v.columns(), 1, v.packed}; }
inline Factor transposed(Factor f) { return {f.data, f.dtype, f.column, f.row, f.packed}; }

// Rows [m0, m1) and columns [n0, n1) of a matrix.
struct Area {
    std::int64_t m0, m1, n0, n1;
};

// A function f(const Area&) that gemm() calls for each part of C as soon as the part is complete. The thread that has
// written the part calls f, while the part is still in a cache. Every element of C belongs to exactly one part. f must
// outlive the call of gemm(). `matrix` is another matrix of C's shape that f reads or writes, if there is one: gemm()
// then prefetches the same part of this matrix.
class Epilogue {
  public:
    Epilogue() = default;
    template <class F>
    explicit Epilogue(const F& f, const Factor& matrix = {})
        : beside(matrix), f_(&f), run_([](const void* p, const Area& part) { (*static_cast<const F*>(p))(part); }) {}
    explicit operator bool() const { return run_ != nullptr; }
    void operator()(const Area& part) const { run_(f_, part); }

    Factor beside = {};

  private:
    const void* f_ = nullptr;
    void (*run_)(const void*, const Area&) = nullptr;
};

// The matrix to write: element (i, j) is at data[i * row + j].
struct Product {
    void* data;
    DType dtype;
    std::int64_t row;
    bool add = false;            // add the product to the old C instead of replacing it
    const void* bias = nullptr;  // N numbers, added to every row; f32 if C is bf16, else of C's type
    Epilogue then = {};
};

inline Product product(const View& v, bool add = false) { return {v.data, v.dtype, v.columns(), add, nullptr, {}}; }

// Computes C(M,N) = A(M,K) B(K,N). Adds the old C if c.add is set, and c.bias if it is not null. Calls the epilogue
// c.then for each part of C. A thread allocates memory only if its part of the product needs more scratch memory than
// any earlier part that this thread computed, or for the copy of B in b.packed. Each of A, B and C can be f32 or bf16.
// Alternatively, all three are f64 or all three are c128; these are computed by the definition (engine/math/matrix.h),
// and gemm() does not call the epilogue.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, Factor a, Factor b, Product c);

// The instruction set of matrix products: "avx512", "avx2" or "generic". The default is the best that the machine
// has. Tests choose other instruction sets, but not while a product runs. The bits of a product differ between
// instruction sets. set_instruction_set() returns false, and changes nothing, if the machine or the compiler does not
// support the instruction set.
const char* instruction_set();
bool set_instruction_set(const char* name);

// The form in which two bf16 factors are multiplied: "amx" or "avx512_bf16" (instructions that multiply pairs of bf16
// numbers and sum in float) or "widened" (both factors are converted to float). The default is the fastest form that
// the machine has. If the instruction set is not "avx512", the form is always "widened". The bits of a product differ
// between forms. set_bf16_form() returns false, and changes nothing, if the machine does not have the form.
const char* bf16_form();
bool set_bf16_form(const char* name);

}  // namespace masquerade
