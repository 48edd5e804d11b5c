// SPDX-License-Identifier: MIT
// Matrix products as the CUDA half asks for them, and who makes them.
//
// multiply() is taken from elsewhere: in namespace cuda it is cuBLASLt's (engine/ops/cuda/cublas.cu); in namespace
// fibers, where the tests run kernels on the CPU, a plain loop answers (tests/emulator/multiply.cpp). tiled_multiply()
// is the engine's own (tiled_multiply.cu) and chosen by gemm.cu: by the rule, or where multiply() refuses a shape.
// These two, and what is above them, are one source for both namespaces.
#pragma once
#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/runtime.h"

namespace masquerade {

// A matrix to be read: whole rows, which follow each other or, where `row` is not 0, begin that far apart; transposed:
// the rows that lie there are its columns.
struct DeviceFactor {
    const void* data;
    DType dtype;
    bool transposed = false;
    std::int64_t row = 0;
};

// The matrix to be written, its rows as those of a factor.
struct DeviceProduct {
    void* data;
    DType dtype;
    bool add = false;  // to what is there, instead of storing
    std::int64_t row = 0;
};
// From one stored row, `length` numbers, to the next.
template <class Matrix>
std::int64_t row_step(const Matrix& x, std::int64_t length) {
    return x.row ? x.row : length;
}

// C(M,N) = A(M,K) B(K,N) (+ C) (+ bias(N) in every row), sums in float; M, N, K > 0.
//     A and B        C
//     f32, f32       f32         the factors are taken as they are; cuBLASLt rounds them to TF32 where the rule says so
//     bf16, bf16     f32, bf16   with a bias only f32: cuBLASLt would have the bias of C's type
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

// The tile of C that a block makes; its bits are the same in all.
enum class TileSize { fitting, small, large };

// One stream, no read-back, no allocation but before the first product; for one shape always the same bits.
//     multiply        false: it makes no products of this shape, and has done nothing
//     tiled_multiply  bits that depend on the row of A, the column of B and K alone
//     product_rule    what choose_products has set
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
