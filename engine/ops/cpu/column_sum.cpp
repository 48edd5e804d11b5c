// SPDX-License-Identifier: MIT
#include "engine/ops/cpu/column_sum.h"

#include "engine/math/lanes.h"
#include "engine/ops/cpu/parallel.h"

#include <algorithm>

namespace masquerade {
namespace {

constexpr std::int64_t chunk_rows = 64, block_columns = 64;

template <class S>
void sum_block(const S* x, std::int64_t M, std::int64_t O, std::int64_t begin, std::int64_t width, float* to,
               bool add) {
    float total[block_columns] = {};
    for (std::int64_t m0 = 0; m0 < M; m0 += chunk_rows) {
        float chunk[block_columns] = {};
        for (std::int64_t m = m0; m < std::min(M, m0 + chunk_rows); m++)
            for (std::int64_t j = 0; j < width; j++) chunk[j] += float(x[m * O + begin + j]);
        for (std::int64_t j = 0; j < width; j++) total[j] += chunk[j];
    }
    for (std::int64_t j = 0; j < width; j++) put(to[begin + j], total[j], add);
}

template <class S>
void sum_columns(const S* x, std::int64_t M, std::int64_t O, float* to, bool add) {
    std::int64_t blocks = (O + block_columns - 1) / block_columns;
    std::int64_t grain = std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, M * block_columns));
    parallel_for(blocks, grain, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; i++) {
            std::int64_t begin = i * block_columns, width = std::min(block_columns, O - begin);
            if (width == block_columns) sum_block(x, M, O, begin, block_columns, to, add);
            else sum_block(x, M, O, begin, width, to, add);
        }
    });
}

}  // namespace

void column_sums(const View& x, const Grad& sums) {
    if (x.dtype == DType::bf16)
        sum_columns(x.as<bfloat16>(), x.rows(), x.columns(), sums.view.as<float>(), sums.add);
    else sum_columns(x.as<float>(), x.rows(), x.columns(), sums.view.as<float>(), sums.add);
}

}  // namespace masquerade
