// SPDX-License-Identifier: MIT
// UniVAE's objective. The encoder half reads a sentence, [CLS] a b .. [SEP]. The decoder half reads [CLS] a b ..,
// without [SEP], and each of its rows predicts the next token; the last row predicts [SEP]. In a pair, the encoder
// half reads the source, and the decoder half reads and predicts the target.
#include "models/tasks/univae_objective.h"

#include "models/tasks/objective_parts.h"

namespace masquerade {
namespace {

Example halves(const Sentence& s, std::uint32_t, const ObjectiveOptions& o) {
    const int n = int(s.ids.size());
    const std::vector<int> wanted = s.target.empty() ? std::vector<int>(s.ids.begin() + 1, s.ids.end()) : s.target;
    if (n > o.longest) throw Error(text("a sentence has ", n, " tokens, expected 2 to max_length = ", o.longest));
    if (int(wanted.size()) >= o.longest)
        throw Error(text("a target has ", wanted.size(), " tokens, expected less than max_length = ", o.longest));
    return source_and_target(s, wanted, o.target_position(n), o);
}

void push_joint(Batch& b, const LayerMasks& masks) {
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
    b.joint_masks = masks.graphs(b.parts);
    b.bucket += ",joint";
}

void masks_of_halves(Batch& b, const ObjectiveOptions& o) {
    for (std::size_t d = 0; d < b.parts.size(); d++) {
        const int cls = int(b.which.size());
        b.cls.push_from(b.source, cls);
        b.cls_rows.push_back(cls);
        b.document_weights.push_back(int(d) < b.documents ? 1 : 0);
        b.which.push_back(int(d));
        b.which.resize(std::size_t(cls + b.parts[d].source), -1);
    }
    b.source_graph = full_mask(sources_of(b.parts));
    b.source_masks = o.masks->graphs(sources_of(b.parts));
    b.cls_graph = only_queries(b.source_masks.at(o.last_read, b.source_graph), b.cls_rows);
    b.graph = causal_mask(targets_of(b.parts));
    b.latent_graph = latent_mask(b.parts);
    b.masks.of_layer = o.masks->of_layers();
    for (const MaskWords& words : o.masks->masks()) {
        const MaskWords::Written w = words.written(1, false);
        b.masks.graphs.push_back(with_window(w.from < w.to ? b.latent_graph : b.graph, w.window));
    }
    if (o.joint) push_joint(b, *o.masks);
}

}  // namespace

const std::vector<Objective>& latent_objectives() {
    static const std::vector<Objective> all = {
        {"reconstruct", "a sentence, or the target of its pair, from the latents of the sentence", Objective::none,
         halves, masks_of_halves},
    };
    return all;
}

ObjectiveOptions halves_options(const UniVae& model) {
    const UniVaeOptions& m = model.options;
    ObjectiveOptions o;
    o.masks = model.masks;
    o.longest = m.max_length;
    o.target_start = m.free_length ? -1 : m.max_length;
    o.last_read = m.latent_at.empty() ? 0 : m.latent_at.back() - 1;
    return o;
}

Batch halves_batch(const UniVae& model, const std::vector<const Sentence*>& sentences, int pad_to, bool joint) {
    ObjectiveOptions o = halves_options(model);
    o.joint = joint;
    return latent_objectives()[0].batch(sentences, 0, o, pad_to);
}

}  // namespace masquerade
