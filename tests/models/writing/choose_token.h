// SPDX-License-Identifier: MIT
// The definition of a draw from a row of logits: what TokenScores::draw is held to.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "models/writing/search.h"

namespace masquerade {

inline SearchOptions drawing(double temperature, int top_k, double top_p) {
    SearchOptions options;
    options.samples = 1;
    options.temperature = temperature;
    options.top_k = top_k;
    options.top_p = top_p;
    return options;
}

// logits (V); `forbidden` tokens are never chosen; u in (0,1) is the draw. Order: temperature, top-k, top-p; equal
// logits are ordered by token id. Where nothing is cut, shares are added up in the order of ids.
inline int choose_token(const float* logits, int V, const SearchOptions& options, const std::vector<int>& forbidden,
                        double u) {
    std::vector<int> order;
    std::vector<double> share;
    for (int id = 0; id < V; id++)
        if (std::find(forbidden.begin(), forbidden.end(), id) == forbidden.end()) order.push_back(id);
    std::size_t keep = order.size();
    const bool some = options.top_k > 0 && std::size_t(options.top_k) < keep;
    if (some || options.top_p < 1)
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
    if (some) keep = std::size_t(options.top_k);
    float top = logits[order[0]];
    for (int id : order) top = std::max(top, logits[id]);
    double total = 0;
    for (std::size_t i = 0; i < keep; i++) {
        share.push_back(std::exp(double(logits[order[i]] - top) / options.temperature));
        total += share.back();
    }
    if (options.top_p < 1) {
        double reached = share[0];
        std::size_t n = 1;
        while (n < keep && reached < options.top_p * total) reached += share[n++];  // the one that crosses p stays
        keep = n;
        total = reached;
    }
    double sum = 0;
    for (std::size_t i = 0; i < keep; i++) {
        sum += share[i];
        if (sum > u * total) return order[i];
    }
    return order[keep - 1];
}

}  // namespace masquerade
