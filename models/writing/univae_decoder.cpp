// SPDX-License-Identifier: MIT
#include "models/writing/univae_decoder.h"

#include <algorithm>

#include "engine/tensor/numbers.h"

namespace masquerade {

std::vector<DecodeRequest> reconstructions(const UniVae& model, const Sentences& sentences, std::uint32_t sample) {
    std::vector<DecodeRequest> requests;
    for (Numbers& latent : mean_latents(model, sentences)) {
        const std::uint32_t line = requests.size();
        requests.push_back({std::move(latent), line, sample, model.start_position(sentences[line]->ids.size())});
        if (model.options.conditional) requests.back().source = sentences[line]->ids;
    }
    return requests;
}

UniVaeDecoder::UniVaeDecoder(const UniVae& model, Special special, bool graph)
    : model_(model), special_(std::move(special)), writer_(model.backbone, 1) {
    writer_.graph = graph;
    if (!model.options.conditional) return;
    ReadingOptions reading;
    reading.target_start = model.options.free_length ? -1 : model.options.max_length;
    reading.longest = model.options.max_length;
    reader_ = std::make_unique<UniLmDecoder>(model.backbone, reading);
    reader_->graph = graph;
}

Tensor* UniVaeDecoder::latents_of(const DecodeRequest* requests, std::size_t count, int l) {
    const LatentSpace& space = model_.space;
    const int Z = space.begin(l + 1) - space.begin(l);
    Numbers z(count * Z);
    for (std::size_t b = 0; b < count; b++)
        std::copy_n(requests[b].latent.begin() + space.begin(l), Z, z.begin() + b * Z);
    Tape& tape = writer().tape();
    return tape.constant("z", {std::int64_t(count), Z}, arithmetic_of(tape.dtype), z.data());
}

void UniVaeDecoder::start(const DecodeRequest* requests, std::size_t count, int most_rows) {
    const LatentSpace& space = model_.space;
    for (std::size_t b = 0; b < count; b++)
        if (requests[b].latent.size() != std::size_t(space.numbers()))
            throw Error(text("decode: a latent vector has ", requests[b].latent.size(), " numbers, the model ",
                             space.numbers()));
    if (reader_) return read_sources(requests, count, most_rows);
    Memory& memory = writer_.start(most_rows, model_.options.max_length);
    Tape& tape = writer_.tape();
    memory.masks = model_.masks.get();
    for (std::size_t b = 0; b < count; b++)
        memory.sources.push_back({int(b), int(b) + 1, requests[b].start, int(requests[b].line)});
    tape.begin("latents");
    for (int l = 0; l < space.layers(); l++) {
        const std::size_t layer = model_.options.latent_at[l];
        Tensor* latent = latents_of(requests, count, l);
        Pass pass;
        pass.memory = model_.latents[l].out(tape, latent);  // one vector per request
        pass.state = &memory.layers[layer];
        model_.backbone.layers[layer].read_memory(tape, pass);
    }
    tape.end();
}

// Reads the sources as UniLM does. At the input of each layer with a latent, the projection Out(z) of the latent
// replaces the hidden state of [CLS] of each source.
void UniVaeDecoder::read_sources(const DecodeRequest* requests, std::size_t count, int most_rows) {
    sources_.assign(count, {});
    which_.clear();
    for (std::size_t b = 0; b < count; b++) {
        if (requests[b].source.size() < 2) throw Error("decode: the model is conditional, and a request has no source");
        sources_[b].ids = requests[b].source;
        sources_[b].name = int(requests[b].line);
        which_.push_back(b);
        which_.resize(which_.size() + requests[b].source.size() - 1, -1);
    }
    Tape& tape = reader_->tape();
    reader_->read(pointers_to(sources_), most_rows, [&](int i, Tensor*& x, Pass&) {
        const int l = model_.latent_of(i);
        if (l < 0) return;
        Tensor* u = model_.latents[l].out(tape, latents_of(requests, count, l));
        x = replace_rows(tape, x, tape.ints(which_), u, text("replaced.", l));
    });
}

std::vector<Hypotheses> UniVaeDecoder::search(std::vector<DecodeRequest> requests, SearchOptions options,
                                              std::uint64_t seed, int refinements) {
    options.forbidden.insert(options.forbidden.end(), special_.forbidden.begin(), special_.forbidden.end());
    std::vector<SearchSource> about(requests.size());
    for (std::size_t i = 0; i < about.size(); i++) {
        about[i].line = requests[i].line;
        about[i].sample = requests[i].sample;
        about[i].begin = reader_ ? special_.sep : special_.cls;
        about[i].ends = {special_.sep};
        about[i].maximum = std::min(options.maximum, model_.options.max_length - 2);  // room for [CLS] and [SEP]
    }
    for (int round = 0;; round++) {
        auto all = write_targets(writer(), about, options, seed, [&](std::size_t first, std::size_t count, int rows) {
            start(&requests[first], count, rows);
        });
        if (round == refinements || model_.options.latent_layers == 0) return all;
        std::vector<Sentence> sentences(all.size());
        for (std::size_t i = 0; i < all.size(); i++) {
            Tokens written = all[i].at(0).tokens;
            written.push_back(special_.sep);
            if (reader_) {
                sentences[i].ids = requests[i].source;
                sentences[i].target = std::move(written);
            } else {
                written.insert(written.begin(), special_.cls);
                sentences[i].ids = std::move(written);
            }
        }
        const auto latents = mean_latents(model_, pointers_to(sentences));
        for (std::size_t i = 0; i < all.size(); i++) requests[i].latent = latents[i];
    }
}

std::vector<Tokens> UniVaeDecoder::write(const std::vector<DecodeRequest>& requests, SearchOptions options,
                                         std::uint64_t seed, int refinements) {
    options.maximum = model_.options.max_length;
    std::vector<Tokens> texts;
    for (auto& hypotheses : search(requests, options, seed, refinements))
        texts.push_back(std::move(hypotheses.at(0).tokens));
    return texts;
}

std::vector<Numbers> UniVaeDecoder::forced_logits(const DecodeRequest& request, const Tokens& ids) {
    start(&request, 1, 1);
    std::vector<Numbers> all;
    if (reader_) all.push_back(numbers_of(writer().memory().next));
    for (std::size_t t = 0; t + 1 < ids.size(); t++) {
        // One row, of source 0. It continues row 0 of the previous step; -1: there is no previous step.
        const OnHost logits(writer().feed({{0, t == 0 ? -1 : 0, ids[t]}}));
        all.emplace_back();
        for (std::int64_t v = 0; v < logits.view().count(); v++) all.back().push_back(logits[v]);
        writer().tape().end();
    }
    return all;
}

}  // namespace masquerade
