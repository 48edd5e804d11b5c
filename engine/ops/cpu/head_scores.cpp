// SPDX-License-Identifier: MIT
#include "engine/ops/cpu/gemm.h"
#include "engine/ops/cpu/reference.h"
#include "engine/ops/launch.h"

namespace masquerade::cpu {
namespace {

using Count = std::size_t;

// Computes the product c = a b with gemm() or, for f64 and c128, with plain loops.
void multiply_part(std::int64_t m, std::int64_t n, std::int64_t k, const Factor& a, const Factor& b, const Product& c) {
    if (runs_fast(a.dtype)) return gemm(m, n, k, a, b, c);
    for_reference_type(a.dtype, [&]<class A>(A) {
        const A *pa = static_cast<const A*>(a.data), *pb = static_cast<const A*>(b.data);
        for (std::int64_t i = 0; i < m; i++)
            for (std::int64_t j = 0; j < n; j++) {
                A s(0);
                for (std::int64_t l = 0; l < k; l++) s += pa[i * a.row + l * a.column] * pb[l * b.row + j * b.column];
                put(static_cast<A*>(c.data)[i * c.row + j], s, c.add);
            }
    });
}

}  // namespace
}  // namespace masquerade::cpu

#include "engine/ops/head_scores.h"
