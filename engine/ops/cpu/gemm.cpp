// SPDX-License-Identifier: MIT
// Which instruction set, and which thread computes which part of C. The sums themselves are in gemm_block.h.
#include "engine/ops/cpu/gemm.h"

#include "engine/ops/cpu/gemm_bf16.h"
#include "engine/ops/cpu/gemm_kernel.h"
#include "engine/ops/cpu/gemm_meter.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/cpu/workspace.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace masquerade {
namespace {

bool machine_has(const GemmKernel* kernel) {
    if (!kernel) return false;
#ifdef __x86_64__
    if (kernel == gemm_avx512())
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    if (kernel == gemm_avx2()) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return true;
}

const GemmKernel* best_kernel() {
    for (const GemmKernel* kernel : {gemm_avx512(), gemm_avx2()})
        if (machine_has(kernel)) return kernel;
    return gemm_generic();
}

const GemmKernel*& chosen_kernel() {
    static const GemmKernel* kernel = best_kernel();
    return kernel;
}

// C is cut into rows x columns parts, about one for each thread, so that the largest costs least: its
// multiply-adds and the packing of its rows of A and columns of B, both counted in multiply-adds.
struct Grid {
    std::int64_t rows = 1, columns = 1;
};

std::int64_t part(std::int64_t size, std::int64_t unit, std::int64_t parts) {
    std::int64_t units = (size + unit - 1) / unit;
    return (units + parts - 1) / parts * unit;
}

Grid choose_grid(const GemmProblem& g, const GemmKernel& kernel) {
    constexpr std::int64_t least = 250000;  // multiply-adds that are worth waking a thread for
    std::int64_t most = std::min<std::int64_t>(threads(), g.m * g.n * g.k / least);
    double pack_a = g.a.column == 1 ? 10 : 30, pack_b = 30;  // an element, measured
    Grid best;
    double best_cost = 1e300;
    for (std::int64_t rows = 1; rows <= most; rows++) {
        std::int64_t columns = most / rows;
        double height = double(part(g.m, kernel.rows, rows)), width = double(part(g.n, kernel.columns, columns));
        double cost = height * width + pack_a * height + pack_b * width;
        if (cost < best_cost) best = {rows, columns}, best_cost = cost;
    }
    return best;
}

// In bytes; where the system does not say, what most machines have.
std::int64_t second_level_cache() {
    static const long found = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return found > 0 ? found : 1 << 20;
}

struct Packed {};
struct Sums {};

}  // namespace

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, Factor a, Factor b, Product c) {
    if (m == 0 || n == 0) return;
    MeteredGemm metered(m, n, k, a, b, c);
    if (gemm_bf16(m, n, k, a, b, c)) return;
    const GemmKernel& kernel = *chosen_kernel();
    GemmProblem problem{m, n, k, a, b, c, static_cast<float*>(c.data), c.row, second_level_cache()};
    if (c.dtype != DType::f32) {
        problem.sums = k > gemm_depth ? workspace<Sums>(std::size_t(m * n)) : nullptr;
        problem.sums_row = n;
    }
    Grid grid = choose_grid(problem, kernel);
    std::int64_t height = part(m, kernel.rows, grid.rows), width = part(n, kernel.columns, grid.columns);
    parallel_each(grid.rows * grid.columns, [&](std::int64_t i) {
        std::int64_t m0 = std::min(m, i / grid.columns * height), m1 = std::min(m, m0 + height);
        std::int64_t n0 = std::min(n, i % grid.columns * width), n1 = std::min(n, n0 + width);
        if (m0 == m1 || n0 == n1) return;
        float* packed = workspace<Packed>(std::size_t(kernel.scratch(n1 - n0, problem.cache)));
        kernel.block(problem, m0, m1, n0, n1, packed);
    });
}

const char* instruction_set() { return chosen_kernel()->name; }

bool set_instruction_set(const char* name) {
    for (const GemmKernel* kernel : {gemm_avx512(), gemm_avx2(), gemm_generic()})
        if (machine_has(kernel) && std::strcmp(kernel->name, name) == 0) {
            chosen_kernel() = kernel;
            return true;
        }
    return false;
}

}  // namespace masquerade
