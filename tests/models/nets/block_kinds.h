// SPDX-License-Identifier: MIT
// A stack with every kind of norm and feed-forward part, without biases, its four heads of queries reading one or two
// heads of keys. The tables of kinds are the list, so a kind that is added is tested with them.
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
