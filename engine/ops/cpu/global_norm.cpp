// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::cpu {

// Computes the norm of g. First sums the squares of each chunk of 4096 numbers, in the type of the numbers, and then
// sums the results of all chunks in double. In both cases, sum(OneLane) (math/lanes.h) fixes the order of the
// additions, so the bits do not depend on the number of threads.
void global_norm(View g, View norm) {
    constexpr std::int64_t chunk = 4096;
    static thread_local std::vector<double> sums;
    std::int64_t n = g.count(), chunks = (n + chunk - 1) / chunk;
    sums.assign(chunks, 0);
    double* to = sums.data();
    for_latent(g, [&]<class A>(A) {
        const A* x = g.as<A>();
        parallel_for(chunks, 8, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t k = begin; k < end; k++) {
                int length = int(std::min(chunk, n - k * chunk));
                const A* part = x + k * chunk;
                to[k] = double(real_of(sum(OneLane{}, length, [&](int i) { return part[i] * part[i]; })));
            }
        });
        const double total = sum(OneLane{}, int(chunks), [&](int k) { return to[k]; });
        *norm.as<A>() = A(std::sqrt(total));
    });
}

}  // namespace masquerade::cpu
