// SPDX-License-Identifier: MIT
// UniLM (Dong et al. 2019), and all other models that are one stack, with another mask: BERT, language models that
// read from left to right, from right to left or in any order, and sequence-to-sequence models. This class is only
// the stack; the batch defines the mask and the labels (models/tasks/objective.h).
//
// In UniLM, a pair is one sequence, [CLS] source [SEP] target [SEP]. The source is read in both directions, the target
// from left to right. No row of the source sees the target, so the keys and values of the source can be cached while a
// target is generated.
#pragma once
#include "models/nets/target_net.h"

namespace masquerade {

class UniLm : public TargetNet {
  public:
    UniLm(Parameters& parameters, const BackboneOptions& options) : backbone(parameters, options) {}

    // If the batch has a scored_graph, the last layer runs only for the M rows with a label. Otherwise all layers run
    // for all N rows.
    Tensor* hidden(Tape& tape, const Batch& batch) const override {
        const bool last_for_all = batch.scored_graph.queries.empty();
        const std::vector<char> parts = parts_of_rows(batch.parts);
        std::vector<char> scored_parts;
        if (backbone.has_parts())
            for (int row : batch.labels.rows) scored_parts.push_back(parts.at(std::size_t(row)));
        const auto before = [&](int i, Tensor*&, Pass& pass) {
            pass.graph = &batch.graph_at(i);
            pass.parts = &parts;
            if (i < backbone.options.layers - 1 || last_for_all) return;
            pass.parts = &scored_parts;
            pass.query_rows = tape.ints(batch.labels.rows);
            pass.query_names = batch.scored.names(tape);
            pass.graph = &batch.scored_graph;
        };
        Tensor* x = backbone.run(tape, batch.rows, backbone.pass(tape, batch.rows, batch.graph), before);
        if (last_for_all) x = gather_rows(tape, x, tape.ints(batch.labels.rows), "scored");
        return backbone.head(tape, backbone.finish(tape, x));
    }
    const Backbone& head_stack() const override { return backbone; }

    Backbone backbone;
};

}  // namespace masquerade
