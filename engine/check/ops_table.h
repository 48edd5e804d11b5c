// SPDX-License-Identifier: MIT
// The declarations that the files of the op table share.
#pragma once
#include "engine/nn/functions.h"
#include "engine/check/ladder_record.h"

namespace masquerade::ladder {

// `count` whole numbers in [0, bound), with repeats.
std::vector<int> some_below(int count, int bound, std::uint32_t salt);
// `count` different ones, in no order.
std::vector<int> different_below(int count, int bound);
// Normal numbers of this deviation.
Draw scaled(double deviation);

// Masks of packed documents for the rows of attention.
struct Layout {
    SegmentGraph graph;
    int keys[2] = {0, 0};  // rows of the two sources; 0: there is no such source
};
using Build = std::function<Layout(int rows)>;
Build by_rule(Rule rule);      // every document one segment
Layout with_latent(int rows);  // UniVAE's decoder: causal, and before itself one row of a second source
Layout prefix(int rows);       // UniLM: the first half full, the second causal and sees the first

std::vector<Op> attention_ops();
std::vector<Op> state_ops();
std::vector<Op> insertion_ops();
std::vector<Op> bucket_ops();  // lsh_attention, sinkhorn

}  // namespace masquerade::ladder
