// SPDX-License-Identifier: MIT
// Defines how a token is drawn from a row of logits. TokenScores::draw must give the same token.
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

// logits has V numbers; u in (0,1) decides the draw. Tokens in `forbidden` are never chosen. First the temperature is
// applied, then top-k, then top-p. Equal logits are ordered by token id. If nothing is cut off, probabilities are added
// up in the order of ids.
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
        // The token with which the sum reaches top_p is kept.
        while (n < keep && reached < options.top_p * total) reached += share[n++];
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
