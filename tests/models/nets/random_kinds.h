// SPDX-License-Identifier: MIT
// Draws kinds of attention by layer and part from the table of kinds. A kind that is added to the table is drawn, too.
#pragma once
#include <functional>

#include "engine/base/random.h"
#include "models/nets/backbone.h"

namespace masquerade {

using Honours = std::function<bool(const AttentionKind&)>;

inline const AttentionKind& random_kind(Sequence& random, const Honours& honours) {
    for (;;) {
        const auto i = random.below(std::uint32_t(attention_kinds().size()));
        if (const AttentionKind& kind = attention_kinds()[i]; honours(kind)) return kind;
    }
}

// Sets o.attention to words for o.layers layers, in which each part has kinds that honour its masks. If one of the
// kinds does not rotate, turns rotary positions off.
inline void draw_kinds(Sequence& random, BackboneOptions& o, const Honours& a, const Honours& b, int layers) {
    const auto both = [&] { return text("A ", random_kind(random, a).name, "; B ", random_kind(random, b).name); };
    o.attention = both();
    for (int i = 0; i < layers; i++)
        if (random.below(2)) o.attention += text(" | layers ", i, ":", i + 1, ": ", both());
    const AttentionWords words(o.attention, layers);
    for (const AttentionKind* kind : words.named()) o.rotary &= kind->rotates;
    o.attention_options = {{"slots", 3}, {"features", 8}, {"chunk", 3}, {"buckets", 4}, {"window", 2}, {"reach", 2}};
}

}  // namespace masquerade
