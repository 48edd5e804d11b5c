// SPDX-License-Identifier: MIT
#include "models/nets/unilm.h"

namespace masquerade {

Tensor* UniLm::hidden(Tape& tape, const ObjectiveBatch& batch) const {
    const bool last_for_all = batch.scored_graph.queries.empty();
    const auto before = [&](int i, Tensor*&, Pass& pass) {
        if (i < backbone.options.layers - 1 || last_for_all) return;
        pass.query_rows = tape.ints(batch.scored_rows);
        pass.query_names = batch.scored.names(tape);
        pass.graph = &batch.scored_graph;
    };
    Tensor* x = backbone.run(tape, batch.rows, backbone.pass(tape, batch.rows, batch.graph), before);  // (M,C), or (N,C)
    if (last_for_all) x = gather_rows(tape, x, tape.ints(batch.scored_rows), "scored");
    return backbone.head(tape, backbone.finish(tape, x));
}

Backbone::MeanLoss UniLm::loss(Tape& tape, const ObjectiveBatch& batch, double smoothing) const {
    return backbone.mean_loss(tape, hidden(tape, batch), batch.targets, batch.weights, batch.target_count,
                              smoothing);
}

}  // namespace masquerade
