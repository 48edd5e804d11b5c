// SPDX-License-Identifier: MIT
#include "models/writing/seq2seq_decoder.h"

#include <numeric>

#include "engine/tensor/numbers.h"

namespace masquerade {

Seq2SeqDecoder::Seq2SeqDecoder(const EncoderDecoder& model, int source_type, int target_type, int longest)
    : model_(model),
      source_type_(source_type),
      target_type_(target_type),
      longest_(longest),
      arena_(model.decoder.device(), Blocks::kept),
      tape_(arena_, model.decoder.storage()) {}

void Seq2SeqDecoder::read(const std::vector<const Sentence*>& sources, int most_rows) {
    source_rows_ = TokenRows();
    read_.clear();
    names_.clear();
    for (const Sentence* s : sources) {
        for (std::size_t i = 0; i < s->ids.size(); i++)
            source_rows_.push(s->ids[i], source_type_, int(i), s->name);
        read_.push_back({int(s->ids.size()), 0});
        names_.push_back(s->name);
    }
    source_graph_ = full_mask(read_);
    write_rows_.resize(std::size_t(source_rows_.count()));
    std::iota(write_rows_.begin(), write_rows_.end(), 0);
    sources_.allocate(model_.decoder, "cache.source", source_rows_.count());
    cache_.start(model_.decoder, most_rows, longest_);
    tape_.begin("read");
    Tensor* read = model_.encode(tape_, source_rows_, source_graph_);  // (Ne,C)
    Pass pass = model_.decoder_pass(tape_, rows_, graph_, source_rows_, cross_graph_);
    pass.encoder = read;
    for (int i = 0; i < model_.decoder.options.layers; i++) {
        Tensor* kv = model_.decoder.layers[std::size_t(i)].encoder_keys(tape_, pass);  // (Ne,2C)
        store_rows(kv->view(), tape_.ints(write_rows_), sources_.layer(i)->view());
    }
    tape_.end();
}

// Feeds the next token of every prefix: the logits (rows, V).
View Seq2SeqDecoder::feed(const std::vector<Row>& rows) {
    cache_.follow(tape_, rows);
    const int written = cache_.written();
    write_rows_ = cache_.next_rows();
    rows_ = TokenRows();
    std::vector<CachedDocument> own;
    Documents cross = read_;
    for (std::size_t i = 0; i < rows.size(); i++) {
        const auto s = std::size_t(rows[i].source);
        rows_.push(rows[i].token, target_type_, written, names_[s]);
        own.push_back({0, 0, cache_.first_row(i), written, 1});
        cross[s].target++;  // the rows of a source are neighbours
    }
    graph_ = cached_mask(own, 0);
    cross_graph_ = cross_mask(cross);
    Pass pass = model_.decoder_pass(tape_, rows_, graph_, source_rows_, cross_graph_);
    Tensor* x = model_.decoder.embed(tape_, rows_);  // (n,C)
    for (int i = 0; i < model_.decoder.options.layers; i++) {
        const LayerCache cache{nullptr, cache_.layer(i), tape_.ints(write_rows_), sources_.layer(i)};
        pass.cache = &cache;
        x = model_.decoder.layers[std::size_t(i)](tape_, x, pass);
    }
    Tensor* h = model_.decoder.head(tape_, model_.decoder.finish(tape_, x));
    cache_.advance();
    return model_.decoder.logits(tape_, h)->view();  // (n,V)
}

const float* Seq2SeqDecoder::step(const std::vector<Row>& rows) {
    logits_.resize(rows.size() * std::size_t(vocabulary()));
    tape_.begin("step");
    const OnHost numbers(feed(rows));
    std::copy_n(numbers.view().as<float>(), logits_.size(), logits_.begin());
    tape_.end();
    return logits_.data();
}

}  // namespace masquerade
