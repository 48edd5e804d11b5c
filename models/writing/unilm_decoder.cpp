// SPDX-License-Identifier: MIT
#include "models/writing/unilm_decoder.h"

#include <algorithm>

#include "engine/tensor/numbers.h"
#include "models/masks/mask.h"

namespace masquerade {

UniLmDecoder::UniLmDecoder(const Backbone& stack, const ReadingOptions& options)
    : SourceReader(stack, options.target_type, options.backward, options.causal || options.backward ? 0 : 1),
      options_(options) {}

void UniLmDecoder::read(const Sentences& sources, int most_rows, const Backbone::BeforeLayer& more) {
    const bool backward = options_.backward;
    Memory& memory = start(most_rows, options_.longest, options_.mask);
    Tape& tape = this->tape();
    rows_ = edge_ = TokenRows();
    edge_rows_.clear();
    Documents documents;
    for (const Sentence* s : sources) {
        const int n = s->ids.size(), begin = rows_.count();
        const int at = backward ? std::min(options_.longest, options_.room - n) : 0, edge = backward ? 0 : n - 1;
        rows_.push_text(s->ids, options_.source_type, at, s->name);
        edge_rows_.push_back(begin + edge);
        edge_.push_from(rows_, begin + edge);
        const int next = backward ? at - 1 : options_.target_start < 0 ? n : options_.target_start;
        memory.sources.push_back({begin, begin + n, next, s->name});
        documents.push_back({n, 0});
    }
    graph_ = backward ? anticausal_mask(documents) : options_.causal ? causal_mask(documents) : full_mask(documents);
    for (QuerySegment& q : graph_.queries) q.along = backward;
    if (options_.masks) masks_ = options_.masks->graphs(documents);
    memory.masks = options_.masks.get();
    memory.goes_on = options_.goes_on;
    const int L = stack_.options.layers;
    edge_graph_ = only_queries(masks_.at(L - 1, graph_), edge_rows_);

    tape.begin("read");
    Tensor* x = stack_.run(tape, rows_, stack_.pass(tape, rows_, graph_), [&](int i, Tensor*& rows, Pass& layer) {
        if (more) more(i, rows, layer);
        layer.state = &memory.layers[i];
        layer.graph = &masks_.at(i, graph_);
        if (i < L - 1) return;
        layer.query_rows = tape.ints(edge_rows_);
        layer.query_names = edge_.names(tape);
        layer.graph = &edge_graph_;
    });  // x has one row for each source: the hidden state of its row in edge_rows_
    if (options_.mask >= 0) return tape.end();
    memory.set_next(stack_.logits(tape, stack_.head(tape, stack_.finish(tape, x)))->view());
    tape.end();
}

}  // namespace masquerade
