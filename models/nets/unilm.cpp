// SPDX-License-Identifier: MIT
#include "models/nets/unilm.h"

namespace masquerade {

Tensor* UniLm::hidden(Tape& tape, const ObjectiveBatch& batch) const {
    Pass pass = backbone.pass(tape, batch.rows, batch.graph);
    Tensor* x = backbone.embed(tape, batch.rows);  // (N,C)
    const int L = backbone.options.layers;
    for (int i = 0; i < L; i++) {
        if (i == L - 1 && !batch.scored_graph.queries.empty()) {
            pass.query_rows = tape.ints(batch.scored_rows);
            pass.query_names = batch.scored.names(tape);
            pass.graph = &batch.scored_graph;
        }
        x = backbone.layers[std::size_t(i)](tape, x, pass);  // (N,C), in the end (M,C)
    }
    if (batch.scored_graph.queries.empty()) x = gather_rows(tape, x, tape.ints(batch.scored_rows), "scored");
    return backbone.head(tape, backbone.finish(tape, x));
}

Backbone::MeanLoss UniLm::loss(Tape& tape, const ObjectiveBatch& batch, double smoothing) const {
    return backbone.mean_loss(tape, hidden(tape, batch), batch.targets, batch.weights, batch.target_count,
                              smoothing);
}

}  // namespace masquerade
