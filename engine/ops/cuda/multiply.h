// SPDX-License-Identifier: MIT
// Matrix products as the CUDA ops request them, and the functions that compute them.
//
// multiply() has two implementations: in namespace cuda, cuBLASLt (engine/ops/cuda/cublas.cu); in namespace fibers,
// where the tests run kernels on the CPU, a plain loop (tests/emulator/multiply.cpp). tiled_multiply() is the engine's
// own product (tiled_multiply.cu); gemm.cu chooses it if the rule says so or if multiply() refuses a shape.
// tiled_multiply() and its callers are one source for both namespaces.
#pragma once
#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/runtime.h"

namespace masquerade {

// A matrix to read, row by row. Rows follow each other or, if `row` is not 0, begin that far apart. If transposed, the
// stored rows are the columns of the matrix.
struct DeviceFactor {
    const void* data;
    DType dtype;
    bool transposed = false;
    std::int64_t row = 0;
};

// The matrix to write. Its rows are stored like those of a factor.
struct DeviceProduct {
    void* data;
    DType dtype;
    bool add = false;  // to C, instead of storing
    std::int64_t row = 0;
};
// The distance from one stored row of `length` numbers to the next.
template <class Matrix>
std::int64_t row_step(const Matrix& x, std::int64_t length) {
    return x.row ? x.row : length;
}

// C(M,N) = A(M,K) B(K,N) (+ C) (+ bias(N) in every row), sums in float; M, N, K > 0.
//     A and B        C
//     f32, f32       f32         factors as they are; cuBLASLt rounds them to TF32 if the rule says so
//     bf16, bf16     f32, bf16   with a bias only f32: cuBLASLt requires a bias of C's type
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

// The tile of C that a block computes; the bits of C do not depend on it.
enum class TileSize { fitting, small, large };

// On one stream, without reading back; allocates only before the first product; the same bits for the same shape.
//     multiply        returns false, having done nothing, if it has no product of this shape
//     tiled_multiply  has bits that depend only on the row of A, the column of B and K
//     product_rule    is what choose_products has set
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
