// SPDX-License-Identifier: MIT
// gemm(), the matrix product on the CPU: chooses the instruction set, and which thread computes which part of C. The
// sums themselves are computed by gemm_block.h or, if the CPU can multiply bf16 factors directly, by gemm_bf16.cpp.
#include "engine/ops/cpu/gemm.h"

#include "engine/math/matrix.h"
#include "engine/ops/cpu/gemm_bf16.h"
#include "engine/ops/cpu/gemm_kernel.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/cpu/reference.h"
#include "engine/ops/cpu/workspace.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace masquerade {
namespace {

const GemmKernel*& chosen_kernel() {
    static const GemmKernel* kernel = &*std::find_if(gemm_kernels().begin(), gemm_kernels().end(),
                                                     [](const GemmKernel& k) { return k.machine_has(); });
    return kernel;
}

// Returns the size of the second-level cache in bytes; 1 MiB if the system does not tell.
std::int64_t second_level_cache() {
    static const long found = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return found > 0 ? found : 1 << 20;
}

struct Packed {};
struct Sums {};

}  // namespace

GemmGrid choose_grid(std::int64_t m, std::int64_t n, std::int64_t most, std::int64_t row_unit, std::int64_t column_unit,
                     double row_cost, double column_cost) {
    const auto part = [](std::int64_t size, std::int64_t unit, std::int64_t parts) {
        return (size + unit * parts - 1) / (unit * parts) * unit;
    };
    GemmGrid best{};
    double best_cost = 1e300;
    for (std::int64_t rows = 1; rows <= most; rows++) {
        const GemmGrid grid{part(m, row_unit, rows), part(n, column_unit, most / rows)};
        const double height = double(grid.height), width = double(grid.width);
        const double cost = height * width + row_cost * height + column_cost * width;
        if (cost < best_cost) best = grid, best_cost = cost;
    }
    return best;
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, Factor a, Factor b, Product c) {
    for (const Factor& f : {a, b})
        if (f.row != 1 && f.column != 1)
            throw Error("gemm: a factor has steps of ", f.row, " and ", f.column,
                        " numbers from row to row and from column to column; one of the two must be 1");
    if (!runs_fast(a.dtype))
        return for_reference_type(a.dtype, [&]<class A>(A) {
            const auto *of_a = static_cast<const A*>(a.data), *of_b = static_cast<const A*>(b.data);
            parallel_for(m, 16, [&](std::int64_t begin, std::int64_t end) {
                product_reference<A>(end - begin, n, k, {of_a + begin * a.row, a.row, a.column},
                                     {of_b, b.row, b.column}, static_cast<const A*>(c.bias),
                                     {static_cast<A*>(c.data) + begin * c.row, c.row, 1}, c.add);
            });
        });
    if (m == 0 || n == 0 || gemm_bf16(m, n, k, a, b, c)) return;
    constexpr std::int64_t least = 250000;  // fewer multiply-adds are not worth waking a thread
    const GemmKernel& kernel = *chosen_kernel();
    const std::int64_t bytes = kernel.packed_size(k, n) * std::int64_t(bytes_of(b.dtype));
    const void* const packed_b = packed_copy(&kernel, m, n, k, b, bytes, [&](void* to) {
        parallel_each((k + gemm_depth - 1) / gemm_depth, [&](std::int64_t i) {
            kernel.pack(b, i * gemm_depth, std::min(k, (i + 1) * gemm_depth), n, to);
        });
    });
    // Measured time to pack a number, in multiply-adds.
    const double pack_a = a.column == 1 ? 10 : 30, pack_b = packed_b ? cost_of_packed : 30;
    GemmProblem problem{m, n, k, a, b, c, packed_b, static_cast<float*>(c.data), c.row, second_level_cache()};
    if (c.dtype != DType::f32) {
        problem.sums = k > gemm_depth ? workspace<Sums>(m * n) : nullptr;
        problem.sums_row = n;
    }
    const std::int64_t most = std::clamp<std::int64_t>(m * n * k / least, 1, threads());
    const GemmGrid part =
        choose_grid(m, n, most, kernel.rows, packed_b ? kernel.panel : kernel.columns, pack_a, pack_b);
    const std::int64_t rows = part.height, columns = part.width, across = (n + columns - 1) / columns;
    parallel_each((m + rows - 1) / rows * across, [&](std::int64_t i) {
        const std::int64_t m0 = i / across * rows, m1 = std::min(m, m0 + rows);
        const std::int64_t n0 = i % across * columns, n1 = std::min(n, n0 + columns);
        float* scratch = workspace<Packed>(kernel.scratch(problem, m1 - m0, n1 - n0));
        kernel.block(problem, {m0, m1, n0, n1}, scratch);
    });
}

const char* instruction_set() { return chosen_kernel()->name; }

bool set_instruction_set(const char* name) {
    for (const GemmKernel& kernel : gemm_kernels())
        if (kernel.machine_has() && std::strcmp(kernel.name, name) == 0) {
            chosen_kernel() = &kernel;
            return true;
        }
    return false;
}

}  // namespace masquerade
