// SPDX-License-Identifier: MIT
// The types and functions that gemm.cpp, the three builds of its inner part (gemm_kernels.cpp) and gemm_bf16.cpp share.
#pragma once
#include "engine/ops/cpu/gemm.h"

#include <vector>

namespace masquerade {

struct GemmProblem {
    std::int64_t m, n, k;
    Factor a, b;
    Product c;
    float* sums;  // (m, n): the sums of the blocks of K so far; C itself if it holds f32
    std::int64_t sums_row;
    std::int64_t cache;  // size of the second-level cache, in bytes
};

struct GemmKernel {
    const char* name;
    bool (*machine_has)();
    std::int64_t rows, columns;                                   // units in which C is cut
    std::int64_t (*scratch)(std::int64_t n, std::int64_t cache);  // floats that block() needs for n columns
    void (*block)(const GemmProblem&, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
                  std::int64_t n_end, float* scratch);  // 64-byte aligned
};

// All kernels that the compiler supports, the fastest first; the last one runs on any machine.
const std::vector<GemmKernel>& gemm_kernels();

// The size of the parts of C, one part for each of at most `most` threads, so that the cost of the largest part is
// lowest. The cost is the part's multiply-adds, plus what each of its rows and columns costs, in multiply-adds.
struct GemmGrid {
    std::int64_t height, width;  // multiples of the units
};
GemmGrid choose_grid(std::int64_t m, std::int64_t n, std::int64_t most, std::int64_t row_unit, std::int64_t column_unit,
                     double row_cost, double column_cost);

}  // namespace masquerade
