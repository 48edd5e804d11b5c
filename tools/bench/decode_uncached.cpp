// SPDX-License-Identifier: MIT
#include "tools/bench/decode_uncached.h"

#include "engine/tensor/numbers.h"

namespace masquerade {

UncachedUniLm::UncachedUniLm(const UniLm& model, const ReadingOptions& options)
    : model_(model),
      options_(options),
      arena_(model.backbone.device(), Blocks::kept),
      tape_(arena_, model.backbone.storage()) {}

void UncachedUniLm::read(const std::vector<const Sentence*>& sources, int) {
    sources_ = sources;
    written_.clear();
}

const float* UncachedUniLm::step(const std::vector<Row>& rows) {
    std::vector<std::vector<int>> written(rows.size());
    for (std::size_t i = 0; i < rows.size(); i++) {
        if (rows[i].parent < 0) continue;  // the source alone
        written[i] = written_[std::size_t(rows[i].parent)];
        written[i].push_back(rows[i].token);
    }
    written_.swap(written);
    const ObjectiveBatch b = batch(rows);
    tape_.begin("step");
    const OnHost logits(model_.backbone.logits(tape_, model_.hidden(tape_, b))->view());  // (rows,V)
    const float* numbers = logits.view().as<float>();
    logits_.assign(numbers, numbers + logits.view().count());
    tape_.end();
    return logits_.data();
}

ObjectiveBatch UncachedUniLm::batch(const std::vector<Row>& rows) const {
    ObjectiveBatch b;
    Documents documents;
    for (std::size_t i = 0; i < rows.size(); i++) {
        const Sentence& source = *sources_.at(std::size_t(rows[i].source));
        const int n = int(source.ids.size()), t = int(written_[i].size());
        const int start = options_.target_start < 0 ? n : options_.target_start;
        for (int k = 0; k < n; k++)
            b.rows.push(source.ids[std::size_t(k)], options_.source_type, k, source.name);
        for (int k = 0; k < t; k++)
            b.rows.push(written_[i][std::size_t(k)], options_.target_type, start + k, source.name);
        b.scored_rows.push_back(b.rows.count() - 1);
        b.scored.push(b.rows.ids.back(), b.rows.types.back(), b.rows.positions.back(), source.name);
        documents.push_back({n, t});
    }
    b.graph = options_.causal ? causal_mask(documents) : unilm_mask(documents);
    b.scored_graph = only_queries(b.graph, b.scored_rows);
    return b;
}

}  // namespace masquerade
