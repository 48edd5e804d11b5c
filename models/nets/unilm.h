// SPDX-License-Identifier: MIT
// UniLM (Dong et al. 2019) and, with other masks, all other models that are one stack: BERT, language models that read
// from left to right, from right to left or in any order, and sequence-to-sequence models. This class is only the
// stack; the batch defines the mask and the labels (models/tasks/objective.h).
//
// In UniLM, a pair is one sequence, [CLS] source [SEP] target [SEP]. The source is read in both directions, the target
// from left to right. No row of the source sees the target, so the keys and values of the source can be cached while a
// target is generated.
#pragma once
#include "models/nets/target_net.h"

namespace masquerade {

// Runs a stack for the rows of a batch, without Backbone::finish(). Returns the output of the last layer: all N rows,
// (N,C), of width C, or only the M rows with a label, (M,C), if the batch has a scored_graph (a mask for these rows).
// `more`, if given, is called before every layer.
inline Tensor* run_rows(Tape& tape, const Backbone& stack, const Batch& batch, const Backbone::BeforeLayer& more = {}) {
    const bool last_for_all = batch.scored_graph.queries.empty();
    const std::vector<char> parts = parts_of_rows(batch.read.empty() ? batch.parts : batch.read);
    std::vector<char> scored_parts;
    if (stack.has_parts() && !last_for_all)
        for (int row : batch.labels.rows) scored_parts.push_back(parts.at(row));
    const auto before = [&](int i, Tensor*& x, Pass& pass) {
        if (more) more(i, x, pass);
        pass.graph = &batch.graph_at(i);
        pass.parts = &parts;
        if (i < stack.options.layers - 1 || last_for_all) return;
        pass.parts = &scored_parts;
        pass.query_rows = tape.ints(batch.labels.rows);
        pass.query_names = batch.scored.names(tape);
        pass.graph = &batch.scored_graph;
    };
    return stack.run(tape, batch.rows, stack.pass(tape, batch.rows, batch.graph), before);
}

// Returns the last hidden states of the M rows with a label, (M,C).
inline Tensor* run_labelled(Tape& tape, const Backbone& stack, const Batch& batch,
                            const Backbone::BeforeLayer& more = {}) {
    Tensor* x = run_rows(tape, stack, batch, more);
    if (batch.scored_graph.queries.empty()) x = gather_rows(tape, x, tape.ints(batch.labels.rows), "scored");
    return stack.finish(tape, x);
}

class UniLm : public TargetNet {
  public:
    UniLm(Parameters& parameters, const BackboneOptions& options) : backbone(parameters, options) {}

    Tensor* hidden(Tape& tape, const Batch& batch) const override {
        return backbone.head(tape, run_labelled(tape, backbone, batch));
    }
    const Backbone& head_stack() const override { return backbone; }

    Backbone backbone;
};

}  // namespace masquerade
