// SPDX-License-Identifier: MIT
#include "engine/ops/shortlist.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/math/scalar.h"
#include "engine/ops/launch.h"

namespace masquerade::cpu {

void shortlist(View x, View best, View ids, View parts) {
    check_shortlist(x, best, parts);
    const int V = int(x.columns()), W = int(best.columns()), P = int(parts.columns());
    for_latent(x, [&]<class A>(A) {
        for_each_long_row(x.rows(), [=](OneLane lane, std::int64_t n) {
            const A* row = x.as<A>() + n * V;
            const auto rank = [&](int column) {
                const auto logit = real_of(row[column]);
                return logit != logit ? decltype(logit)(-INFINITY) : logit;
            };
            static thread_local std::vector<int> order;
            order.resize(std::size_t(V));
            std::iota(order.begin(), order.end(), 0);
            std::partial_sort(order.begin(), order.begin() + W, order.end(),
                              [&](int a, int b) { return rank(a) != rank(b) ? rank(a) > rank(b) : a < b; });
            store(lane, W, best.as<A>() + n * W, false, [&](int i) { return row[order[std::size_t(i)]]; });
            store(lane, W, ids.as<A>() + n * W, false, [&](int i) { return A(order[std::size_t(i)]); });
            const A top = row[order[0]];
            store(lane, P, parts.as<A>() + n * P, false, [&](int p) {
                const A* from = row + p * logits_a_part;
                return sum(lane, std::min(logits_a_part, V - p * logits_a_part),
                           [&](int i) { return exp_of(from[i] - top); });
            });
        });
    });
}

}  // namespace masquerade::cpu
