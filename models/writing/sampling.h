// SPDX-License-Identifier: MIT
// Choosing the next token from a row of logits.
#pragma once
#include <cstdint>
#include <vector>

namespace masquerade {

struct SamplingOptions {
    double temperature = 0;  // 0: greedy, the most likely token
    int top_k = 0;           // keep the k most likely; 0: all
    double top_p = 1;  // then the fewest whose share of what was kept reaches p      Holtzman et al. 2020
    double min_p = 0;  // then those with at least this share of the most likely one's   Nguyen et al. 2024
};

// logits (V); `forbidden` tokens are never chosen; u in (0,1) is the draw. Order: temperature, top-k,
// top-p, min-p; equal logits are ordered by token id, so the same row and draw always give the same token.
int choose_token(const float* logits, int V, const SamplingOptions& options,
                 const std::vector<int>& forbidden, double u);

// The draw of (seed, input line, sample, step): what it is does not depend on the batch.
double sampling_draw(std::uint64_t seed, std::uint32_t line, std::uint32_t sample, std::uint32_t step);

}  // namespace masquerade
