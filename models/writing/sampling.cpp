// SPDX-License-Identifier: MIT
#include "models/writing/sampling.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "engine/base/random.h"

namespace masquerade {

int choose_token(const float* logits, int V, const SamplingOptions& options,
                 const std::vector<int>& forbidden, double u) {
    auto allowed = [&](int id) {
        return std::find(forbidden.begin(), forbidden.end(), id) == forbidden.end();
    };
    if (options.temperature <= 0) {
        int best = -1;
        for (int id = 0; id < V; id++)
            if ((best < 0 || logits[id] > logits[best]) && allowed(id)) best = id;
        return best;
    }
    static thread_local std::vector<int> order;
    static thread_local std::vector<double> share;
    order.clear();
    for (int id = 0; id < V; id++)
        if (allowed(id)) order.push_back(id);
    auto before = [&](int a, int b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; };
    std::size_t keep = order.size();
    if (options.top_k > 0 && std::size_t(options.top_k) < keep) {
        keep = std::size_t(options.top_k);
        std::partial_sort(order.begin(), order.begin() + std::ptrdiff_t(keep), order.end(), before);
    } else if (options.top_p < 1) {
        std::sort(order.begin(), order.end(), before);
    }
    float top = logits[*std::max_element(order.begin(), order.begin() + std::ptrdiff_t(keep),
                                         [&](int a, int b) { return logits[a] < logits[b]; })];
    share.clear();
    double total = 0;
    for (std::size_t i = 0; i < keep; i++) {
        share.push_back(std::exp(double(logits[order[i]] - top) / options.temperature));
        total += share.back();
    }
    if (options.top_p < 1) {
        double reached = 0;
        std::size_t n = 0;
        while (n < keep && reached < options.top_p * total)
            reached += share[n++];  // the one that crosses p stays
        keep = std::max<std::size_t>(1, n);
        total = std::max(reached, share[0]);
    }
    if (options.min_p > 0) {
        total = 0;
        for (std::size_t i = 0; i < keep; i++) {
            if (share[i] < options.min_p) share[i] = 0;  // that of the most likely token is 1
            total += share[i];
        }
    }
    double target = u * total, sum = 0;
    for (std::size_t i = 0; i < keep; i++) {
        sum += share[i];
        if (sum > target) return order[i];
    }
    return order[keep - 1];
}

double sampling_draw(std::uint64_t seed, std::uint32_t line, std::uint32_t sample, std::uint32_t step) {
    Four bits = make_stream(seed, "generate.token", step).at(line, sample, 0);
    return (double((std::uint64_t(bits[0]) << 20) | (bits[1] >> 12)) + 0.5) * 0x1p-52;
}

}  // namespace masquerade
