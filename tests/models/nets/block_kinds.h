// SPDX-License-Identifier: MIT
// Options of stacks with every kind of norm and every kind of feed-forward part, without biases. Four heads of queries
// read one or two heads of keys. The kinds come from their tables, so a new kind is tested without a change here.
#pragma once
#include <vector>

#include "models/nets/backbone.h"

namespace masquerade {

inline std::vector<BackboneOptions> with_block_kinds(BackboneOptions o) {
    std::vector<BackboneOptions> all;
    o.heads = 4, o.bias = false;
    for (const NormKind& norm : norm_kinds())
        for (const FeedForwardKind& ffn : feed_forward_kinds()) {
            o.norm = norm.name, o.ffn = ffn.name, o.kv_heads = all.size() % 2 ? 1 : 2;
            all.push_back(o);
        }
    return all;
}

}  // namespace masquerade
