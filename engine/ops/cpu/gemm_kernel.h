// SPDX-License-Identifier: MIT
// What gemm.cpp and the three builds of its inner part (gemm_block.h) tell each other.
#pragma once
#include "engine/ops/cpu/gemm.h"

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
    std::int64_t rows, columns;                               // steps in which C is cut
    std::int64_t (*scratch)(std::int64_t n, std::int64_t cache);  // floats that block() needs for n columns
    void (*block)(const GemmProblem&, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
                  std::int64_t n_end, float* scratch);  // 64-byte aligned
};

// Null where the compiler does not know the instruction set.
const GemmKernel* gemm_avx512();
const GemmKernel* gemm_avx2();
const GemmKernel* gemm_generic();

}  // namespace masquerade
