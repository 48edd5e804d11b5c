// SPDX-License-Identifier: MIT
// Types and functions shared by gemm.cpp, its inner part (gemm_kernels.cpp compiles it three times) and gemm_bf16.cpp.
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
    std::int64_t rows, columns;                                   // C is cut at multiples of these
    std::int64_t (*scratch)(std::int64_t n, std::int64_t cache);  // floats that block() needs for n columns
    void (*block)(const GemmProblem&, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
                  std::int64_t n_end, float* scratch);  // 64-byte aligned
};

// All kernels that the compiler supports, the fastest first; the last one runs on any machine.
const std::vector<GemmKernel>& gemm_kernels();

// choose_grid() returns the size of the parts of C, of which there are at most `most`, one for each thread. It
// minimises the cost of a whole part: height * width + row_cost * height + column_cost * width.
struct GemmGrid {
    std::int64_t height, width;  // multiples of row_unit and column_unit
};
GemmGrid choose_grid(std::int64_t m, std::int64_t n, std::int64_t most, std::int64_t row_unit, std::int64_t column_unit,
                     double row_cost, double column_cost);

}  // namespace masquerade
