// SPDX-License-Identifier: MIT
#include "models/nets/unilm.h"

namespace masquerade {

Tensor* UniLm::hidden(Tape& tape, const Batch& batch) const {
    const bool last_for_all = batch.scored_graph.queries.empty();
    const auto before = [&](int i, Tensor*&, Pass& pass) {
        pass.graph = &batch.graph_at(i);
        if (i < backbone.options.layers - 1 || last_for_all) return;
        pass.query_rows = tape.ints(batch.asked.rows);
        pass.query_names = batch.scored.names(tape);
        pass.graph = &batch.scored_graph;
    };
    Tensor* x = backbone.run(tape, batch.rows, backbone.pass(tape, batch.rows, batch.graph), before);  // (M,C), or (N,C)
    if (last_for_all) x = gather_rows(tape, x, tape.ints(batch.asked.rows), "scored");
    return backbone.head(tape, backbone.finish(tape, x));
}

}  // namespace masquerade
