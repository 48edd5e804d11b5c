// SPDX-License-Identifier: MIT
#include "models/unilm_decoder.h"

#include "engine/tensor/numbers.h"

namespace masquerade {

UniLmDecoder::UniLmDecoder(const UniLm& model, const ReadingOptions& options)
    : model_(model),
      options_(options),
      arena_(model.backbone.device(), false),
      tape_(arena_, model.backbone.storage()) {}

Tensor UniLmDecoder::stored(const char* path, std::int64_t rows) {
    Tensor t;
    t.path = path;
    t.shape = {rows, 2 * model_.backbone.options.width};
    t.dtype = tape_.dtype;
    t.device = tape_.device;
    buffers_.emplace_back(t.bytes(), t.device);
    t.value = buffers_.back().data();
    return t;
}

void UniLmDecoder::read(const std::vector<const Sentence*>& sources, int most_rows) {
    const int L = model_.backbone.options.layers;
    rows_ = last_ = TokenRows();
    begin_ = {0};
    names_.clear();
    last_rows_.clear();
    write_rows_.clear();
    Documents documents;
    for (const Sentence* s : sources) {
        const int n = int(s->ids.size());
        for (int i = 0; i < n; i++) rows_.push(s->ids[std::size_t(i)], options_.source_type, i, s->name);
        documents.push_back({n, 0});
        begin_.push_back(rows_.count());
        names_.push_back(s->name);
        last_rows_.push_back(rows_.count() - 1);
        last_.push(s->ids.back(), options_.source_type, n - 1, s->name);
    }
    for (int row = 0; row < rows_.count(); row++) write_rows_.push_back(row);
    graph_ = options_.causal ? causal_mask(documents) : full_mask(documents);
    last_graph_ = only_queries(graph_, last_rows_);

    buffers_.clear();
    memory_.clear();
    own_.clear();
    slots_ = most_rows;
    for (int i = 0; i < L; i++) {
        memory_.push_back(stored("cache.source", rows_.count()));
        own_.push_back(stored("cache.target", std::int64_t(slots_) * options_.longest));
    }
    tape_.begin("read");
    Pass pass = model_.backbone.pass(tape_, rows_, graph_);
    Tensor* x = model_.backbone.embed(tape_, rows_);  // (N,C)
    for (int i = 0; i < L; i++) {
        LayerCache cache{nullptr, &memory_[std::size_t(i)], tape_.ints(write_rows_)};
        pass.cache = &cache;
        if (i == L - 1) {
            pass.query_rows = tape_.ints(last_rows_);
            pass.query_names = last_.names(tape_);
            pass.graph = &last_graph_;
        }
        x = model_.backbone.layers[std::size_t(i)](tape_, x, pass);  // in the end (sources, C)
    }
    Tensor* h = model_.backbone.head(tape_, model_.backbone.finish(tape_, x));
    const OnHost logits(model_.backbone.logits(tape_, h)->view());  // (sources, V)
    after_sources_.resize(std::size_t(logits.view().count()));
    for (std::size_t i = 0; i < after_sources_.size(); i++) after_sources_[i] = logits[std::int64_t(i)];
    tape_.end();
    written_ = -1;
    slot_of_.clear();
}

// A prefix keeps the slot of the one it continues; where several continue one, the others get a copy of its rows.
void UniLmDecoder::give_slots(const std::vector<Row>& rows) {
    std::vector<int> slot(rows.size(), -1);
    std::vector<char> taken(std::size_t(slots_), 0);
    if (rows.size() > std::size_t(slots_))
        throw Error(text("decode: ", rows.size(), " prefixes, at most ", slots_, " were announced"));
    for (std::size_t i = 0; i < rows.size() && written_ > 0; i++) {
        const int before = slot_of_.at(std::size_t(rows[i].parent));
        if (taken[std::size_t(before)]) continue;
        taken[std::size_t(before)] = 1;
        slot[i] = before;
    }
    from_.clear();
    to_.clear();
    int free = 0;
    for (std::size_t i = 0; i < rows.size(); i++) {
        if (slot[i] >= 0) continue;
        while (taken[std::size_t(free)]) free++;
        taken[std::size_t(free)] = 1;
        slot[i] = free;
        for (int t = 0; t < written_; t++) {
            from_.push_back(slot_of_[std::size_t(rows[i].parent)] * options_.longest + t);
            to_.push_back(free * options_.longest + t);
        }
    }
    slot_of_ = slot;
    if (from_.empty()) return;
    for (Tensor& own : own_)  // first read, then write: a slot may be both
        store_rows(embedding(tape_, tape_.ints(from_), &own, "continued")->view(), tape_.ints(to_),
                   own.view());
}

// Feeds token number `written_` of every prefix: the logits (rows, V).
View UniLmDecoder::feed(const std::vector<Row>& rows) {
    if (written_ >= options_.longest)
        throw Error(text("decode: a target of more than ", options_.longest, " tokens"));
    give_slots(rows);
    rows_ = TokenRows();
    write_rows_.clear();
    std::vector<CachedDocument> documents;
    for (std::size_t i = 0; i < rows.size(); i++) {
        const auto s = std::size_t(rows[i].source);
        const int start = options_.target_start < 0 ? begin_[s + 1] - begin_[s] : options_.target_start;
        const int first = slot_of_[i] * options_.longest;
        rows_.push(rows[i].token, options_.target_type, start + written_, names_[s]);
        write_rows_.push_back(first + written_);
        documents.push_back({begin_[s], begin_[s + 1], first, written_, 1});
    }
    graph_ = cached_mask(documents, 1);
    Pass pass = model_.backbone.pass(tape_, rows_, graph_);
    Tensor* x = model_.backbone.embed(tape_, rows_);  // (n,C)
    for (int i = 0; i < model_.backbone.options.layers; i++) {
        LayerCache cache{&memory_[std::size_t(i)], &own_[std::size_t(i)], tape_.ints(write_rows_)};
        pass.cache = &cache;
        x = model_.backbone.layers[std::size_t(i)](tape_, x, pass);
    }
    Tensor* h = model_.backbone.head(tape_, model_.backbone.finish(tape_, x));
    written_++;
    return model_.backbone.logits(tape_, h)->view();  // (n,V)
}

const float* UniLmDecoder::step(const std::vector<Row>& rows) {
    const auto V = std::size_t(vocabulary());
    logits_.resize(rows.size() * V);
    if (written_ < 0) {
        written_ = 0;
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
