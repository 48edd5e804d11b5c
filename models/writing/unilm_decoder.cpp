// SPDX-License-Identifier: MIT
#include "models/writing/unilm_decoder.h"

#include <algorithm>

#include "engine/tensor/numbers.h"

namespace masquerade {

UniLmDecoder::UniLmDecoder(const UniLm& model, const ReadingOptions& options)
    : model_(model),
      options_(options),
      arena_(model.backbone.device(), Blocks::kept),
      tape_(arena_, model.backbone.storage()) {}

void UniLmDecoder::read(const std::vector<const Sentence*>& sources, int most_rows) {
    const int L = model_.backbone.options.layers;
    rows_ = edge_ = TokenRows();
    begin_ = {0};
    names_.clear();
    next_.clear();
    edge_rows_.clear();
    write_rows_.clear();
    Documents documents;
    for (const Sentence* s : sources) {
        const int n = int(s->ids.size());
        const int start = options_.backward ? std::min(options_.longest, options_.room - n) : 0;
        const int edge = options_.backward ? 0 : n - 1;
        for (int i = 0; i < n; i++)
            rows_.push(s->ids[std::size_t(i)], options_.source_type, start + i, s->name);
        documents.push_back({n, 0});
        edge_rows_.push_back(begin_.back() + edge);
        edge_.push(s->ids[std::size_t(edge)], options_.source_type, start + edge, s->name);
        begin_.push_back(rows_.count());
        names_.push_back(s->name);
        next_.push_back(options_.backward           ? start - 1
                        : options_.target_start < 0 ? n
                                                    : options_.target_start);
    }
    for (int row = 0; row < rows_.count(); row++) write_rows_.push_back(row);
    graph_ = options_.backward ? anticausal_mask(documents)
             : options_.causal ? causal_mask(documents)
                               : full_mask(documents);
    edge_graph_ = only_queries(graph_, edge_rows_);

    memory_.allocate(model_.backbone, "cache.source", rows_.count());
    cache_.start(model_.backbone, most_rows, options_.longest, options_.backward);
    asked_ = false;
    tape_.begin("read");
    Pass pass = model_.backbone.pass(tape_, rows_, graph_);
    Tensor* x = model_.backbone.embed(tape_, rows_);  // (N,C)
    for (int i = 0; i < L; i++) {
        LayerCache cache{nullptr, memory_.layer(i), tape_.ints(write_rows_)};
        pass.cache = &cache;
        if (i == L - 1) {
            pass.query_rows = tape_.ints(edge_rows_);
            pass.query_names = edge_.names(tape_);
            pass.graph = &edge_graph_;
        }
        x = model_.backbone.layers[std::size_t(i)](tape_, x, pass);  // in the end (sources, C)
    }
    Tensor* h = model_.backbone.head(tape_, model_.backbone.finish(tape_, x));
    const OnHost logits(model_.backbone.logits(tape_, h)->view());  // (sources, V)
    after_sources_.resize(std::size_t(logits.view().count()));
    for (std::size_t i = 0; i < after_sources_.size(); i++) after_sources_[i] = logits[std::int64_t(i)];
    tape_.end();
}

// Feeds the next token of every prefix: the logits (rows, V).
View UniLmDecoder::feed(const std::vector<Row>& rows) {
    cache_.follow(tape_, rows);
    const int written = cache_.written();
    rows_ = TokenRows();
    write_rows_ = cache_.next_rows();
    std::vector<CachedDocument> documents;
    for (std::size_t i = 0; i < rows.size(); i++) {
        const auto s = std::size_t(rows[i].source);
        const int position = options_.backward ? next_[s] - written : next_[s] + written;
        rows_.push(rows[i].token, options_.target_type, position, names_[s]);
        documents.push_back({begin_[s], begin_[s + 1], cache_.first_row(i), written, 1});
    }
    graph_ = options_.backward ? cached_before_mask(documents, 1) : cached_mask(documents, 1);
    Pass pass = model_.backbone.pass(tape_, rows_, graph_);
    Tensor* x = model_.backbone.embed(tape_, rows_);  // (n,C)
    for (int i = 0; i < model_.backbone.options.layers; i++) {
        LayerCache cache{memory_.layer(i), cache_.layer(i), tape_.ints(write_rows_)};
        pass.cache = &cache;
        x = model_.backbone.layers[std::size_t(i)](tape_, x, pass);
    }
    Tensor* h = model_.backbone.head(tape_, model_.backbone.finish(tape_, x));
    cache_.advance();
    return model_.backbone.logits(tape_, h)->view();  // (n,V)
}

const float* UniLmDecoder::step(const std::vector<Row>& rows) {
    const auto V = std::size_t(vocabulary());
    logits_.resize(rows.size() * V);
    if (!asked_) {
        asked_ = true;
        for (std::size_t i = 0; i < rows.size(); i++)
            std::copy_n(after_sources_.begin() + std::ptrdiff_t(std::size_t(rows[i].source) * V), V,
                        logits_.begin() + std::ptrdiff_t(i * V));
        return logits_.data();
    }
    tape_.begin("step");
    const OnHost numbers(feed(rows));
    std::copy_n(numbers.view().as<float>(), logits_.size(), logits_.begin());
    tape_.end();
    return logits_.data();
}

}  // namespace masquerade
