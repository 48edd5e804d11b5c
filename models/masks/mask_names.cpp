// SPDX-License-Identifier: MIT
// The table of named masks.
#include "engine/base/named.h"
#include "engine/ops/visible.h"
#include "models/masks/mask.h"
#include "models/masks/words.h"

namespace masquerade {
namespace {

using Details = const MaskDetails&;

template <SegmentGraph (*make)(const Documents&)>
SegmentGraph all(const Documents& d, Details) {
    return make(d);
}
SegmentGraph content(const Documents& d, Details more) { return rank_mask(d, more.rank, false); }
SegmentGraph query(const Documents& d, Details more) { return rank_mask(d, more.rank, true); }
SegmentGraph streams(const Documents& d, Details more) { return two_stream_mask(d, more.stream_rank); }
SegmentGraph trees(const Documents& d, Details more) { return knowledge_mask(d, more.entity, more.branch); }
SegmentGraph pseudo(const Documents& d, Details more) { return pseudo_mask(d, more.weight); }
SegmentGraph blocks(const Documents& d, Details more) { return block_streams_mask(d, more.block); }
SegmentGraph decoded(const Documents& documents, Details) {
    std::vector<CachedDocument> cached;
    int row = 0, b = 0;
    for (const Document& d : documents) {
        int fresh = d.target > 0 ? 1 : 0;
        cached.push_back({b, b + 1, row, d.target - fresh, fresh});
        row += d.target;
        b++;
    }
    return cached_mask(cached, 1);
}

}  // namespace

const std::vector<NamedMask>& named_masks() {
    // In the descriptions, "split form" means that UniVAE runs its encoder half and its decoder half as two passes
    // (models/nets/univae.h). If a row ends with true, the mask is for a decoder (NamedMask::decoder).
    using Rows = MaskRows;
    static const std::vector<NamedMask> masks = {
        {"bert", "every token sees every token", Rows::tokens, "AB full"},
        {"mlm", "as bert: masked tokens are predicted from both sides", Rows::tokens, "AB full"},
        {"lm", "language model: a token sees itself and those before it", Rows::tokens, "AB causal"},
        {"lm-reverse", "reversed: itself and those after it", Rows::tokens, "AB anticausal"},
        {"unilm", "A full; B causal, sees A", Rows::tokens, "A full; B causal sees A"},
        {"prefix-lm", "as unilm: A is the prefix", Rows::tokens, "A full; B causal sees A"},
        {"insertion", "A full; B full, sees A: Insertion Transformer", Rows::tokens, "A full; B full sees A"},
        {"independent", "A full; B causal: UniVAE's lower layers", Rows::tokens, "A full; B causal"},
        {"uniae", "A full; B causal, sees [CLS]: UniVAE's upper layers", Rows::tokens, "A full; B causal sees A[0]"},
        {"uniae-causal", "as uniae, with A causal", Rows::tokens, "A causal; B causal sees A[0]"},
        {"univae-encoder", "split form: A full, on its own", Rows::source, "A full"},
        {"univae-lower", "split form: B causal, on its own", Rows::target, "B causal"},
        {"univae-upper", "split form: B causal, sees one latent key z", Rows::latent, nullptr, all<latent_mask>},
        {"univae-decode", "decoding: the newest token sees z and the cached", Rows::decoded, nullptr, decoded},
        {"encoder", "encoder of two stacks, and of MASS: A full", Rows::source, "A full"},
        {"decoder", "decoder of two stacks, and of MASS: B causal", Rows::target, "B causal", nullptr, true},
        {"cross", "cross-attention of two stacks, and of MASS: B sees A", Rows::cross, nullptr, all<cross_mask>},
        {"plm", "permutation LM, content stream: ranks up to one's own", Rows::tokens, nullptr, content},
        {"plm-query", "permutation LM, query stream: ranks below one's own", Rows::tokens, nullptr, query},
        {"plm-streams", "both streams in one tensor, content, then queries", Rows::tokens, nullptr, streams},
        {"block-diffusion", "blocks, true in A, hidden in B: itself, and A before it", Rows::tokens, nullptr, blocks},
        {"plm-shuffled", "permutation LM on shuffled tokens: causal", Rows::tokens, "AB causal"},
        {"k-bert", "trunk full; an entity and its branches see each other", Rows::tokens, nullptr, trees},
        {"pseudo-mask", "UniLMv2: tokens by spans, [MASK]s see the spans before", Rows::tokens, nullptr, pseudo},
        {"window", "as bert, at most 2 places away", Rows::tokens, "AB full window=2"},
        {"dilated", "as bert, 2 or 4 places away", Rows::tokens, "AB full window=2 dilation=2"},
        {"global", "as bert, 1 place away or the first", Rows::tokens, "AB full window=1 globals=1"},
        {"strided", "as lm, 2 places back or by threes", Rows::tokens, "AB causal window=2 stride=3"},
        {"unilm-window", "as unilm, at most 3 away", Rows::tokens,
         "A full window=3 over=all; B causal window=3 over=all sees A"},
    };
    return masks;
}

const NamedMask& find_mask(const std::string& name) {
    for (const NamedMask& mask : named_masks())
        if (mask.name == name) return mask;
    throw BadUsage("unknown mask ", name, "; there are ", joined(names_of(named_masks())),
                   "; or say it in words: \"A full; B causal sees A\"");
}

SegmentGraph make_mask(const std::string& name, const Documents& documents, const MaskDetails& details) {
    if (mask_in_words(name)) return MaskWords(name)(documents);
    const NamedMask& mask = find_mask(name);
    if (!mask.words) return mask.make(documents, details);
    const MaskWords words(mask.words);
    return words(mask.rows == MaskRows::source   ? sources_of(documents)
                 : mask.rows == MaskRows::target ? targets_of(documents)
                                                 : documents);
}

MaskDetails example_details(const Documents& documents) {
    MaskDetails more;
    for (const Document& d : documents) {
        for (int i = 0; i < d.source + d.target; i++) {
            int t = i - d.source;  // index of the row within the target B; negative in the source A
            // rank: the source is context, with rank -1. The second half of the target is predicted first, from
            // right to left; then the first half, from left to right.
            const int half = d.target / 2;
            auto rank_of = [&](int k) { return k < 0 ? -1 : k < half ? d.target - half + k : d.target - 1 - k; };
            more.rank.push_back(rank_of(t));
            // stream_rank: source rows are content rows, target rows are query rows. Each query row predicts one
            // content row and has the rank of this content row. With n query rows, the last n content rows are
            // predicted.
            more.stream_rank.push_back(rank_of(t < 0 ? t + d.target : t));
            // branch and entity: the target consists of branches of two tokens each (the last one may have one token).
            // Branch k is a fact about entity k, which is the source token 1 + k.
            more.branch.push_back(t < 0 ? -1 : t / 2);
            more.entity.push_back(t < 0 ? (i > 0 && i <= (d.target + 1) / 2 ? i - 1 : -1) : t / 2);
            // weight: the source is context. The target begins with true tokens; each of them is one span. Then one
            // [MASK] per span follows. If the target has an odd length, the last span has no [MASK].
            int spans = (d.target + 1) / 2;
            more.weight.push_back(t < 0 ? 0 : t < spans ? t + 1 : -(t - spans + 1));
            // block: the target consists of blocks of two tokens each (the last one may have one token). The source
            // ends with their true tokens, except those of the last block, which no row would see.
            const int clean = std::min((d.target - 1) / 2 * 2, d.source - 1), from = t + clean;
            more.block.push_back(t >= 0 ? t / 2 : from < 0 ? -1 : from / 2);
        }
    }
    return more;
}

}  // namespace masquerade
