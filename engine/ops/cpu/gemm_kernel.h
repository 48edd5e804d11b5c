// SPDX-License-Identifier: MIT
// Types and functions that gemm.cpp, gemm_bf16.cpp and gemm_block.h share. gemm_block.h is the inner part of the matrix
// product; gemm_kernels.cpp compiles it for up to three instruction sets.
#pragma once
#include "engine/ops/cpu/gemm.h"

#include <vector>

namespace masquerade {

struct GemmProblem {
    std::int64_t m, n, k;
    Factor a, b;
    Product c;
    const void* packed_b;  // all of B, packed by GemmKernel::pack; null: block() packs the part of B that it needs
    // (m,n): the sums so far. The sum over K is computed in blocks, and `sums` holds the total of the blocks that are
    // done. If C is f32, `sums` is C itself. If C is bf16 and K fits in one block, `sums` is null, because no sums need
    // to be kept.
    float* sums;
    std::int64_t sums_row;
    std::int64_t cache;  // size of the second-level cache, in bytes
};

struct GemmKernel {
    const char* name;
    bool (*machine_has)();
    // C is cut into parts, one for each thread. The parts begin at multiples of these numbers of rows and columns.
    std::int64_t rows, columns;
    std::int64_t panel;  // number of columns of a panel of B (gemm_pack.h), a multiple of `columns`
    // Returns the number of floats that block() needs as scratch for an area with so many rows and columns.
    std::int64_t (*scratch)(const GemmProblem&, std::int64_t rows, std::int64_t columns);
    // Computes an area of C; `scratch` is aligned to 64 bytes. If B is packed, the area begins with a panel of B.
    void (*block)(const GemmProblem&, const Area&, float* scratch);
    // Packs rows [k0, k1) of B(k,n) into `to`, for GemmProblem::packed_b. k0 is a multiple of gemm_depth, and k1 is the
    // next multiple or k. packed_size() returns how many numbers of the type of B all of B has when it is packed.
    std::int64_t (*packed_size)(std::int64_t k, std::int64_t n);
    void (*pack)(const Factor& b, std::int64_t k0, std::int64_t k1, std::int64_t n, void* to);
};

// All kernels that the compiler supports, the fastest first; the last one runs on any machine.
const std::vector<GemmKernel>& gemm_kernels();

// Returns all of B(k,n) as pack(void* to) packs it, in `bytes` bytes, or null if no copy is kept: with more rows of C,
// packing B is a small part of the product. `layout` stands for the layout of the copy (PackedCopy).
template <class F>
const void* packed_copy(const void* layout, std::int64_t m, std::int64_t n, std::int64_t k, const Factor& b,
                        std::int64_t bytes, F pack) {
    if (!b.packed || m > 512) return nullptr;
    return b.packed->get({layout, b.data, b.dtype, k, n, b.row, b.column}, bytes, pack);
}
// Measured time to read a number of a packed B from memory, in multiply-adds of floats.
constexpr double cost_of_packed = 8;

// choose_grid() cuts C(m,n) into at most `most` parts of equal size, one for each thread, and returns this size. Parts
// at the edge of C may be smaller. The size minimises the cost of a full part, in multiply-adds for each step of the
// sum over K:
//     height * width + row_cost * height + column_cost * width
// row_cost and column_cost are the costs of packing one number of A and one number of B.
struct GemmGrid {
    std::int64_t height, width;  // size of a part of C; multiples of row_unit and column_unit
};
GemmGrid choose_grid(std::int64_t m, std::int64_t n, std::int64_t most, std::int64_t row_unit, std::int64_t column_unit,
                     double row_cost, double column_cost);

}  // namespace masquerade
