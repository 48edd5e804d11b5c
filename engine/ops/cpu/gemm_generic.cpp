// SPDX-License-Identifier: MIT
// The matrix product for any machine: vectors of 4 floats, product and sum rounded apart.
#include "engine/ops/cpu/gemm_kernel.h"

#include <utility>

namespace masquerade {
namespace {
constexpr int lanes = 4;
constexpr int tile_rows = 4, vectors = 2;
typedef float Vector __attribute__((vector_size(16)));
inline Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
}  // namespace
}  // namespace masquerade

#include "engine/ops/cpu/gemm_block.h"

namespace masquerade {
const GemmKernel* gemm_generic() {
    static constexpr GemmKernel kernel = {"generic", 4, lanes, scratch, block};
    return &kernel;
}
}  // namespace masquerade
