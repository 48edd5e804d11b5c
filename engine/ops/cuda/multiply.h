// SPDX-License-Identifier: MIT
// The description of a matrix product on CUDA, and the functions that compute it for gemm.cu.
//
// multiply() has two implementations: in namespace cuda, cuBLASLt (engine/ops/cuda/cublas.cu); in namespace fibers, in
// which the tests run kernels on the CPU, a plain loop (tests/emulator/multiply.cpp). tiled_multiply() is the engine's
// own product (tiled_multiply.cu), with one source for both namespaces; gemm.cu uses it if ProductRule::deterministic
// is set, or if multiply() returns false.
#pragma once
#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/runtime.h"

namespace masquerade {

// A matrix to read, stored row by row. If `row` is 0, the stored rows follow one another; else they begin `row` numbers
// apart. If `transposed` is set, the stored rows are the columns of the matrix.
struct DeviceFactor {
    const void* data;
    DType dtype;
    bool transposed = false;
    std::int64_t row = 0;
};

// The matrix to write; `row` as in DeviceFactor.
struct DeviceProduct {
    void* data;
    DType dtype;
    bool add = false;  // add to C instead of storing
    std::int64_t row = 0;
};
// Returns the distance from one stored row of `length` numbers to the next.
template <class Matrix>
std::int64_t row_step(const Matrix& x, std::int64_t length) {
    return x.row ? x.row : length;
}

// C(M,N) = A(M,K) B(K,N) (+ C) (+ bias(N) in every row), summed in float; M, N, K > 0. Types:
//     A, B    C
//     f32     f32            cuBLASLt rounds the factors to TF32 if ProductRule::tf32 is set
//     bf16    f32 or bf16    with a bias only f32, because cuBLASLt requires a bias of C's type
struct Multiplication {
    std::int64_t m, n, k;
    DeviceFactor a, b;
    DeviceProduct c;
    const float* bias = nullptr;
};

inline std::string name_of(const Multiplication& p) {
    return text("a product (", p.m, ",", p.k, ") ", name_of(p.a.dtype), " times (", p.k, ",", p.n, ") ",
                name_of(p.b.dtype), " in ", name_of(p.c.dtype), p.bias ? " with a bias" : "");
}
inline void expect_known(const Multiplication& p) {
    const bool f32 = p.a.dtype == DType::f32 && p.b.dtype == DType::f32 && p.c.dtype == DType::f32;
    const bool bf16 = p.a.dtype == DType::bf16 && p.b.dtype == DType::bf16 &&
                      (p.c.dtype == DType::f32 || (p.c.dtype == DType::bf16 && !p.bias));
    if ((!f32 && !bf16) || p.m <= 0 || p.n <= 0 || p.k <= 0)
        throw Error(text("no kernel makes ", name_of(p), "; expected f32 throughout, or bf16 in f32 or, without a ",
                         "bias, in bf16, and sizes above 0"));
}

// The size of the tile of C that a block computes. The bits of C do not depend on it.
enum class TileSize { fitting, small, large };

// Both products run on the stream of the ops, read nothing back, allocate memory only before the first product, and
// give the same bits for the same shape.
//     multiply        returns false, and does nothing, if it has no kernel for this shape
//     tiled_multiply  gives bits that depend only on the row of A, the column of B and K
//     product_rule    is the rule that choose_products() has set
namespace cuda {
bool multiply(const Multiplication& what);
void tiled_multiply(const Multiplication& what, TileSize size = TileSize::fitting);
ProductRule& product_rule();
void choose_products(ProductRule rule);
const char* why_no_cublas();
}  // namespace cuda
namespace fibers {
bool multiply(const Multiplication& what);
void tiled_multiply(const Multiplication& what, TileSize size = TileSize::fitting);
ProductRule& product_rule();
}  // namespace fibers

}  // namespace masquerade
