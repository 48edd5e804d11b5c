// SPDX-License-Identifier: MIT
// Packing sentences for UniVAE: the encoder reads [CLS] a .. [SEP]; the decoder half is [CLS] a .., each row asked for
// its successor, the last one for [SEP]. A pair has its target in the decoder half.
#include "models/nets/univae.h"

#include <algorithm>

#include "models/masks/mask.h"

namespace masquerade {
namespace {

void push_joint(UniVaeBatch& b) {
    int source_row = 0, row = 0;
    for (std::size_t d = 0; d < b.parts.size(); d++) {
        b.joint_cls_rows.push_back(b.joint.count());
        for (int i = 0; i < b.parts[d].source; i++) b.joint.push_from(b.source, source_row++);
        for (int t = 0; t < b.parts[d].target; t++) {
            b.joint_decoder_rows.push_back(b.joint.count());
            b.joint.push_from(b.rows, row++);
        }
        b.joint_which.push_back(int(d));
        b.joint_which.resize(std::size_t(b.joint.count()), -1);
    }
    b.joint_lower_graph = independent_mask(b.parts);
    b.joint_upper_graph = uniae_mask(b.parts);
    b.bucket += ",joint";
}

}  // namespace

UniVaeBatch UniVae::batch(const std::vector<const Sentence*>& sentences, int pad_to, bool with_joint) const {
    std::vector<Example> examples;
    for (const Sentence* s : sentences) {
        const int n = int(s->ids.size());
        if (n < 2 || n > options.max_length)
            throw Error(text("a sentence has ", n, " tokens, expected 2 to max_length = ", options.max_length));
        Example e;
        for (int i = 0; i < n; i++) e.source.push(s->ids[std::size_t(i)], 0, i, s->name);
        const std::vector<int> wanted =
            s->target.empty() ? std::vector<int>(s->ids.begin() + 1, s->ids.end()) : s->target;
        if (int(wanted.size()) >= options.max_length)
            throw Error(
                text("a target has ", wanted.size(), " tokens, expected less than max_length = ", options.max_length));
        for (int t = 0; t < int(wanted.size()); t++) {
            e.rows.push(t == 0 ? s->ids[0] : wanted[std::size_t(t) - 1], 1, start_position(n) + t, s->name);
            e.asked.push(t, wanted[std::size_t(t)]);
        }
        examples.push_back(std::move(e));
    }
    UniVaeBatch b(pack(examples, pad_to));
    for (std::size_t d = 0; d < b.parts.size(); d++) {
        const int cls = int(b.which.size());
        b.cls.push_from(b.source, cls);
        b.cls_rows.push_back(cls);
        b.document_weights.push_back(int(d) < b.documents ? 1 : 0);
        b.which.push_back(int(d));
        b.which.resize(std::size_t(cls + b.parts[d].source), -1);
    }
    b.source_graph = full_mask(sources_of(b.parts));
    b.source_masks = masks.graphs(sources_of(b.parts));
    b.cls_graph =
        only_queries(b.source_masks.at(options.latent_at.empty() ? 0 : options.latent_at.back() - 1, b.source_graph),
                     b.cls_rows);
    b.graph = causal_mask(targets_of(b.parts));
    b.latent_graph = latent_mask(b.parts);
    b.masks.of_layer = masks.of_layers();
    for (const MaskWords& words : masks.masks()) {
        const MaskWords::Written w = words.written(1, false);
        b.masks.graphs.push_back(with_window(w.from < w.to ? b.latent_graph : b.graph, w.window));
    }
    if (!with_joint) return b;
    push_joint(b);
    b.joint_masks = masks.graphs(b.parts);
    return b;
}

}  // namespace masquerade
