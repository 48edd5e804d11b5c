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
    float* sums;  // (m, n): what the blocks of K so far have left; C itself when it holds f32
    std::int64_t sums_row;
    std::int64_t cache;  // bytes of the second level
};

struct GemmKernel {
    const char* name;
    bool (*machine_has)();
    std::int64_t rows, columns;                                   // steps in which C is cut
    std::int64_t (*scratch)(std::int64_t n, std::int64_t cache);  // floats that block() needs for n columns
    void (*block)(const GemmProblem&, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
                  std::int64_t n_end, float* scratch);  // 64-byte aligned
};

// All that the compiler knows, the fastest first; the last one runs on any machine.
const std::vector<GemmKernel>& gemm_kernels();

// C is cut into parts of this size, one for each of at most `most` threads, so that the largest part costs least: its
// multiply-adds, and what each of its rows and columns costs beside them, counted in multiply-adds.
struct GemmGrid {
    std::int64_t height, width;  // multiples of the units
};
GemmGrid choose_grid(std::int64_t m, std::int64_t n, std::int64_t most, std::int64_t row_unit, std::int64_t column_unit,
                     double row_cost, double column_cost);

}  // namespace masquerade
