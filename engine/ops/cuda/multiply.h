// SPDX-License-Identifier: MIT
// The description of a matrix product on CUDA, and the two functions that compute it for gemm.cu.
//
// multiply() uses cuBLASLt in namespace cuda (engine/ops/cuda/cublas.cu). In namespace fibers, in which the tests run
// kernels on the CPU, multiply() is a plain loop (tests/emulator/multiply.cpp). tiled_multiply() is the engine's own
// product (tiled_multiply.cu), with one source for both namespaces. gemm.cu uses tiled_multiply() if
// ProductRule::deterministic is set, or if multiply() returns false.
#pragma once
#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/runtime.h"

namespace masquerade {

// A factor of a product, stored row by row. If `row` is 0, the stored rows follow one another without gaps; else they
// begin `row` numbers apart. If `transposed` is set, the stored rows are the columns of the factor.
struct DeviceFactor {
    const void* data;
    DType dtype;
    bool transposed = false;
    std::int64_t row = 0;
};

// The matrix C that a product writes. `row` means the same as in DeviceFactor.
struct DeviceProduct {
    void* data;
    DType dtype;
    bool add = false;  // add the product to the old C instead of replacing it
    std::int64_t row = 0;
};
// Returns the distance, in numbers, from one stored row of `length` numbers to the next.
template <class Matrix>
std::int64_t row_step(const Matrix& x, std::int64_t length) {
    return x.row ? x.row : length;
}

// C(M,N) = A(M,K) B(K,N), summed in float; M, N, K > 0. If c.add is set, the old C is added; if `bias` is not null,
// bias(N) is added to every row. The bias has the type of C, as cuBLASLt requires. If C is bf16, it is rounded once,
// after the bias is added. If `sums` is not null, sums(M) becomes the sums of the rows of A; then C is f32, and there
// is no bias. Allowed types:
//     A, B    C
//     f32     f32            cuBLASLt rounds the factors to TF32 if ProductRule::tf32 is set
//     bf16    f32 or bf16
struct Multiplication {
    std::int64_t m, n, k;
    DeviceFactor a, b;
    DeviceProduct c;
    const void* bias = nullptr;
    float* sums = nullptr;
};

inline std::ostream& operator<<(std::ostream& to, const Multiplication& p) {
    return to << "a product (" << p.m << "," << p.k << ") " << name_of(p.a.dtype) << " times (" << p.k << "," << p.n
              << ") " << name_of(p.b.dtype) << " in " << name_of(p.c.dtype) << (p.bias ? " with a bias" : "")
              << (p.sums ? " with sums of rows" : "");
}
inline void expect_known(const Multiplication& p) {
    const bool f32 = p.a.dtype == DType::f32 && p.b.dtype == DType::f32 && p.c.dtype == DType::f32;
    const bool bf16 =
        p.a.dtype == DType::bf16 && p.b.dtype == DType::bf16 && (p.c.dtype == DType::f32 || p.c.dtype == DType::bf16);
    const bool sums = !p.sums || (p.c.dtype == DType::f32 && !p.bias);
    if ((!f32 && !bf16) || !sums || p.m <= 0 || p.n <= 0 || p.k <= 0)
        throw Error("no kernel makes ", p,
                    "; expected f32 throughout, or bf16 in f32 or bf16, sizes above 0, and sums ",
                    "of rows only in f32 and without a bias");
}

// The size of the tile of C that a block of tiled_multiply() computes. With `fitting`, tiled_multiply() chooses the
// size. The bits of C do not depend on the size.
enum class TileSize { fitting, small, large };

// multiply() and tiled_multiply() run on the stream of the ops and copy nothing to the host. They allocate no device
// memory, except for a workspace at the first product. The same factors always give the same bits.
//     multiply         returns false, and does nothing, if cuBLASLt is not available or has no kernel for this shape
//     tiled_multiply   the bits of an element depend only on its row of A, its column of B and K; computes no `sums`
//     product_rule     returns the rule that choose_products() has set
//     why_no_cublas    returns "" if cuBLASLt can be used, else the reason why not
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
