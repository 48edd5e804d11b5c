// SPDX-License-Identifier: MIT
#include "models/writing/univae_decoder.h"

#include <algorithm>

#include "engine/base/processes.h"
#include "engine/tensor/copy.h"
#include "engine/tensor/numbers.h"

namespace masquerade {
namespace {

// Returns the latents of latent layer l, one row for each request.
Tensor* latents_of(Tape& tape, const UniVae& model, const std::vector<const DecodeRequest*>& requests, int l) {
    const LatentSpace& space = model.space;
    const int Z = space.begin(l + 1) - space.begin(l);
    Numbers z;
    for (const DecodeRequest* r : requests) {
        if (r->latent.size() != std::size_t(space.numbers()))
            throw Error("decode: a latent vector has ", r->latent.size(), " numbers, the model ", space.numbers());
        z.insert(z.end(), r->latent.begin() + space.begin(l), r->latent.begin() + space.begin(l + 1));
    }
    return tape.constant("z", {std::int64_t(requests.size()), Z}, arithmetic_of(tape.dtype), z.data());
}

// Returns the sentence that the decoder half reads for a request: the source in a conditional model, else [CLS] [SEP],
// which it ignores.
Sentence source_of(const DecodeRequest& request, const UniVae& model, const UniVaeDecoder::Special& special) {
    if (!model.options.conditional) return {{special.cls, special.sep}, int(request.line), {}};
    if (request.source.size() < 2) throw Error("decode: the model is conditional, and a request has no source");
    return {request.source, int(request.line), {}};
}

// The canvases of requests. The decoder half reads them and the latents of the requests.
class LatentCanvases {
  public:
    LatentCanvases(const UniVae& model, Tape& tape, const std::vector<DecodeRequest>& requests,
                   const UniVaeDecoder::Special& special)
        : model_(model), tape_(tape), requests_(requests) {
        for (const DecodeRequest& r : requests) sources_.push_back(source_of(r, model, special));
    }
    // Begins a step of the tape, and runs the decoder half for halves[i], a canvas of request which[i]. Sets `batch`,
    // and returns what UniVae::decode() returns. The caller ends the step.
    Tensor* run(const std::vector<int>& which, std::vector<CanvasHalf> halves, Batch& batch) const {
        std::vector<const DecodeRequest*> requests;
        for (std::size_t i = 0; i < which.size(); i++) {
            requests.push_back(&requests_.at(which[i]));
            halves[i].sentence = &sources_[which[i]], halves[i].start = requests.back()->start;
        }
        batch = canvas_batch(model_, halves);
        tape_.begin("canvases");
        std::vector<Tensor*> z;
        for (int l = 0; l < model_.space.layers(); l++) z.push_back(latents_of(tape_, model_, requests, l));
        return model_.decode(tape_, batch, z);
    }
    const UniVae& model() const { return model_; }
    Tape& tape() const { return tape_; }

  private:
    const UniVae& model_;
    Tape& tape_;
    const std::vector<DecodeRequest>& requests_;
    std::vector<Sentence> sources_;
};

// Scores the slots of canvases. Canvas::source is the index of a request.
class LatentSlots : public SlotModel {
  public:
    LatentSlots(const LatentCanvases& canvases, const Tokens& forbidden, int end) : canvases_(canvases), end_(end) {
        forbidden_.resize(canvases.model().backbone.options.vocabulary);
        for (int word : forbidden) forbidden_.at(word) = 1;
        forbidden_.at(end_) = 1;
    }
    std::vector<std::vector<SlotScore>> score(const std::vector<const Canvas*>& canvases) override {
        std::vector<int> which;
        std::vector<CanvasHalf> halves;
        for (const Canvas* c : canvases) which.push_back(c->source), halves.push_back({c->tokens});
        Batch batch;
        Tensor* x = canvases_.run(which, std::move(halves), batch);
        auto all = slot_scores(canvases_.tape(), *canvases_.model().insertion, x, batch, forbidden_, end_);
        canvases_.tape().end();
        return all;
    }

  private:
    const LatentCanvases& canvases_;
    const int end_;
    std::vector<char> forbidden_;  // for each token of the vocabulary, whether it is never inserted
};

// Computes the logits of hidden places. MaskedCanvas::source is the index of a request.
class LatentPlaces : public PlaceModel {
  public:
    LatentPlaces(const LatentCanvases& canvases, int mask) : canvases_(canvases), mask_(mask) {}
    int vocabulary() const override { return canvases_.model().backbone.options.vocabulary; }
    const float* logits(const std::vector<const MaskedCanvas*>& canvases) override {
        std::vector<int> which;
        std::vector<CanvasHalf> halves;
        for (const MaskedCanvas* c : canvases) {
            which.push_back(c->source);
            halves.push_back({c->tokens, c->asked});
            std::replace(halves.back().words.begin(), halves.back().words.end(), int(MaskedCanvas::hidden), mask_);
        }
        Batch batch;
        Tensor* x = canvases_.run(which, std::move(halves), batch);  // (M,C): a row per asked place
        Tape& tape = canvases_.tape();
        const Backbone& stack = canvases_.model().backbone;
        const View z = stack.logits(tape, stack.head(tape, x))->view();
        logits_.resize(z.count());
        copy_bytes(z.data, z.device, logits_.data(), Device::cpu, z.bytes());
        tape.end();
        return logits_.data();
    }

  private:
    const LatentCanvases& canvases_;
    const int mask_;
    std::vector<float> logits_;
};

constexpr std::size_t at_a_time = 64;  // requests whose canvases are written at once

}  // namespace

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
    if (!model.options.conditional || model.insertion || model.unmasks()) return;
    ReadingOptions reading;
    reading.target_start = model.options.free_length ? -1 : model.options.max_length;
    reading.longest = model.options.max_length;
    reader_ = std::make_unique<UniLmDecoder>(model.backbone, reading);
    reader_->graph = graph;
}

void UniVaeDecoder::start(const DecodeRequest* requests, std::size_t count, int most_rows) {
    std::vector<const DecodeRequest*> all;
    for (std::size_t b = 0; b < count; b++) all.push_back(&requests[b]);
    if (reader_) return read_sources(all, most_rows);
    Memory& memory = writer_.start(most_rows, model_.options.max_length);
    Tape& tape = writer_.tape();
    memory.masks = model_.masks.get();
    for (std::size_t b = 0; b < count; b++)
        memory.sources.push_back({int(b), int(b) + 1, requests[b].start, int(requests[b].line)});
    tape.begin("latents");
    for (int l = 0; l < model_.space.layers(); l++) {
        const std::size_t layer = model_.options.latent_at[l];
        Tensor* latent = latents_of(tape, model_, all, l);
        Pass pass;
        pass.memory = model_.latents[l].out(tape, latent);  // one vector per request
        pass.state = &memory.layers[layer];
        model_.backbone.layers[layer].read_memory(tape, pass);
    }
    tape.end();
}

// Reads the sources as UniLM does. At the input of each layer with a latent, the projection Out(z) of the latent
// replaces the hidden state of [CLS] of each source.
void UniVaeDecoder::read_sources(const std::vector<const DecodeRequest*>& requests, int most_rows) {
    sources_.clear();
    which_.clear();
    for (const DecodeRequest* r : requests) {
        which_.push_back(int(sources_.size()));
        sources_.push_back(source_of(*r, model_, special_));
        which_.resize(which_.size() + r->source.size() - 1, -1);
    }
    Tape& tape = reader_->tape();
    reader_->read(pointers_to(sources_), most_rows, [&](int i, Tensor*& x, Pass&) {
        const int l = model_.latent_of(i);
        if (l < 0) return;
        Tensor* u = model_.latents[l].out(tape, latents_of(tape, model_, requests, l));
        x = replace_rows(tape, x, tape.ints(which_), u, text("replaced.", l));
    });
}

std::vector<Hypotheses> UniVaeDecoder::from_left_to_right(const std::vector<DecodeRequest>& requests,
                                                          SearchOptions options, std::uint64_t seed) {
    options.forbidden.insert(options.forbidden.end(), special_.forbidden.begin(), special_.forbidden.end());
    std::vector<SearchSource> about(requests.size());
    for (std::size_t i = 0; i < about.size(); i++) {
        about[i].line = requests[i].line;
        about[i].sample = requests[i].sample;
        about[i].begin = reader_ ? special_.sep : special_.cls;
        about[i].ends = {special_.sep};
        about[i].maximum = std::min(options.maximum, model_.options.max_length - 2);  // room for [CLS] and [SEP]
    }
    return write_targets(writer(), about, options, seed,
                         [&](std::size_t first, std::size_t count, int rows) { start(&requests[first], count, rows); });
}

std::vector<Hypotheses> UniVaeDecoder::search(std::vector<DecodeRequest> requests, const SearchOptions& options,
                                              std::uint64_t seed, int refinements) {
    for (int round = 0;; round++) {
        std::vector<Hypotheses> all;
        if (model_.insertion)
            for (Written& w : insert(requests, options))
                all.push_back({{std::move(w.tokens), w.score, w.ended, w.passes()}});
        else if (model_.unmasks())
            for (std::vector<Written>& samples : unmask(requests, options, seed)) {
                all.emplace_back();
                for (Written& w : samples) all.back().push_back({std::move(w.tokens), w.score, w.ended, w.rounds});
            }
        else
            all = from_left_to_right(requests, options, seed);
        if (round == refinements || model_.options.latent_layers == 0) return all;
        std::vector<Sentence> sentences(all.size());
        for (std::size_t i = 0; i < all.size(); i++) {
            Tokens written = all[i].at(0).tokens;
            written.push_back(special_.sep);
            if (model_.options.conditional) {
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

std::vector<Written> UniVaeDecoder::insert(const std::vector<DecodeRequest>& requests, const SearchOptions& options) {
    // The maximum includes [SEP], the canvas does not; max_length includes [CLS] and [SEP].
    const CanvasOptions how =
        canvas_options(options, special_.finalization, std::min(options.maximum - 1, model_.options.max_length - 2));
    Tokens forbidden = special_.forbidden;
    forbidden.insert(forbidden.end(), options.forbidden.begin(), options.forbidden.end());
    const LatentCanvases canvases(model_, writer_.tape(), requests, special_);
    LatentSlots slots(canvases, forbidden, special_.sep);
    std::vector<Written> all;
    for (std::size_t first = 0; first < requests.size(); first += at_a_time) {
        std::vector<Canvas> some;
        for (std::size_t i = first; i < std::min(requests.size(), first + at_a_time); i++)
            some.push_back({int(i), {}, {}});
        for (Written& w : write_canvases(slots, std::move(some), how)) all.push_back(std::move(w));
    }
    return all;
}

std::vector<std::vector<Written>> UniVaeDecoder::unmask(const std::vector<DecodeRequest>& requests,
                                                        SearchOptions options, std::uint64_t seed) {
    check_unmasking(options);
    if (options.unmask.lengths > 0)
        throw BadUsage("--lengths is of runs with canvas=drawn; a univae with decoder=diffusion writes [SEP] itself");
    options.forbidden.insert(options.forbidden.end(), special_.forbidden.begin(), special_.forbidden.end());
    const LatentCanvases canvases(model_, writer_.tape(), requests, special_);
    LatentPlaces model(canvases, special_.mask);
    const int places = model_.options.max_length - 1, samples = std::max(1, options.samples);
    const std::size_t count = requests.size() * std::size_t(samples);
    const std::size_t most = std::max<std::size_t>(1, 4096 / std::size_t(places));  // canvases at a time
    std::vector<std::vector<Written>> all;
    for (std::size_t first = 0; first < count; first += most) {
        std::vector<MaskedCanvas> some;
        for (std::size_t n = first; n < std::min(count, first + most); n++) {
            const std::size_t i = n / std::size_t(samples);
            MaskedCanvas& c = some.emplace_back();
            c.source = int(i), c.line = requests[i].line;
            c.sample = requests[i].sample + std::uint32_t(n % std::size_t(samples));
            c.end = special_.sep, c.minimum = options.minimum;
            c.tokens.assign(std::min(places, options.maximum - 1), int(MaskedCanvas::hidden));
            c.tokens.resize(places, c.end);
        }
        for (Written& w : unmask_canvases(model, std::move(some), options, seed)) {
            if (all.empty() || int(all.back().size()) == samples) all.emplace_back();
            // A text that has no end in any place would be longer than max_length with [CLS] and [SEP].
            w.tokens.resize(std::min(int(w.tokens.size()), places - 1));
            w.came.resize(w.tokens.size());
            all.back().push_back(std::move(w));
        }
    }
    return all;
}

std::vector<Tokens> UniVaeDecoder::write(const std::vector<DecodeRequest>& requests, SearchOptions options,
                                         std::uint64_t seed, int refinements, Numbers* passes) {
    options.maximum = model_.options.max_length;
    const std::vector<DecodeRequest> own = own_part(requests, 64);
    std::vector<Tokens> texts;
    Numbers own_passes;
    if (const ByItself alone; !own.empty())
        for (auto& hypotheses : search(own, options, seed, refinements)) {
            own_passes.push_back(hypotheses.at(0).passes);
            texts.push_back(std::move(hypotheses[0].tokens));
        }
    if (passes)
        for (double each : gather_numbers(own_passes)) passes->push_back(each);
    return gather_lists(texts);
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
