// SPDX-License-Identifier: MIT
#include "models/writing/univae_decoder.h"

#include <algorithm>

#include "engine/base/processes.h"
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

// Scores the canvases of requests: their slots or their hidden places. The decoder half reads the canvases and the
// latents of their requests. The source of a canvas is the index of its request.
class LatentCanvases : public SlotModel, public PlaceModel {
  public:
    LatentCanvases(const UniVae& model, Tape& tape, const std::vector<DecodeRequest>& requests,
                   const UniVaeDecoder::Special& special, const Tokens& forbidden)
        : model_(model), tape_(tape), requests_(requests), special_(special), forbidden_(forbidden) {
        for (const DecodeRequest& r : requests) sources_.push_back(source_of(r, model, special));
    }
    SlotScores score(const Canvases& canvases) override {
        Tensor* x = run(canvases);
        auto all = slot_scores(tape_, *model_.insertion, x, batch_, forbidden_, special_.sep);
        tape_.end();
        return all;
    }
    int vocabulary() const override { return model_.backbone.options.vocabulary; }
    const float* logits(const MaskedCanvases& canvases) override {
        const Backbone& stack = model_.backbone;
        Tensor* x = run(canvases);  // (M,C): a row per asked place
        const float* const all = on_host(stack.logits(tape_, stack.head(tape_, x))->view(), logits_);
        tape_.end();
        return all;
    }

  private:
    CanvasHalf half_of(const Canvas& canvas) const { return {canvas.tokens}; }
    CanvasHalf half_of(const MaskedCanvas& canvas) const {
        CanvasHalf half{canvas.tokens, canvas.asked};
        std::replace(half.words.begin(), half.words.end(), MaskedCanvas::hidden, special_.mask);
        return half;
    }
    // Begins a step of the tape, and runs the decoder half. Returns what UniVae::decode() returns. The caller ends the
    // step.
    template <class AnyCanvas>
    Tensor* run(const std::vector<const AnyCanvas*>& canvases) {
        std::vector<const DecodeRequest*> requests;
        std::vector<CanvasHalf> halves;
        for (const AnyCanvas* c : canvases) {
            requests.push_back(&requests_.at(c->source));
            halves.push_back(half_of(*c));
            halves.back().sentence = &sources_[c->source], halves.back().start = requests.back()->start;
        }
        batch_ = canvas_batch(model_, halves);
        tape_.begin("canvases");
        std::vector<Tensor*> z;
        for (int l = 0; l < model_.space.layers(); l++) z.push_back(latents_of(tape_, model_, requests, l));
        return model_.decode(tape_, batch_, z);
    }

    const UniVae& model_;
    Tape& tape_;
    const std::vector<DecodeRequest>& requests_;
    const UniVaeDecoder::Special& special_;
    const Tokens& forbidden_;
    std::vector<Sentence> sources_;
    Batch batch_;
    std::vector<float> logits_;
};

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
        about[i].sample = requests[i].sample * std::max(1, options.samples);
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
        if (!model_.insertion && !model_.unmasks())
            all = from_left_to_right(requests, options, seed);
        else
            for (std::vector<Written>& samples : in_any_order(requests, options, seed)) {
                all.emplace_back();
                for (Written& w : samples)
                    all.back().push_back(
                        {std::move(w.tokens), w.score, w.ended, model_.insertion ? w.passes() : w.rounds});
            }
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

std::vector<std::vector<Written>> UniVaeDecoder::in_any_order(const std::vector<DecodeRequest>& requests,
                                                              SearchOptions options, std::uint64_t seed) {
    // The maximum includes [SEP], the canvas does not; max_length includes [CLS] and [SEP].
    const int longest = model_.options.max_length - 2, most = std::min(options.maximum - 1, longest);
    options.forbidden.insert(options.forbidden.end(), special_.forbidden.begin(), special_.forbidden.end());
    LatentCanvases model(model_, writer_.tape(), requests, special_, options.forbidden);
    std::vector<std::vector<Written>> all;
    if (model_.insertion) {
        const CanvasOptions how = canvas_options(options, special_.finalization, most);
        constexpr std::size_t at_a_time = 64;
        for (std::size_t first = 0; first < requests.size(); first += at_a_time) {
            std::vector<Canvas> some;
            for (std::size_t i = first; i < std::min(requests.size(), first + at_a_time); i++)
                some.push_back({int(i), {}, {}});
            for (Written& w : write_canvases(model, std::move(some), how)) all.push_back({std::move(w)});
        }
        return all;
    }
    check_unmasking(options);
    if (options.unmask.lengths > 0)
        throw BadUsage("--lengths is of runs with canvas=drawn; a univae with decoder=diffusion writes [SEP] itself");
    const std::size_t samples = std::max(1, options.samples), count = requests.size() * samples, places = longest + 1,
                      at_a_time = std::max<std::size_t>(1, 4096 / places);
    for (std::size_t first = 0; first < count; first += at_a_time) {
        std::vector<MaskedCanvas> some;
        for (std::size_t n = first; n < std::min(count, first + at_a_time); n++) {
            const DecodeRequest& request = requests[n / samples];
            MaskedCanvas& c = some.emplace_back();
            c.source = int(n / samples), c.line = request.line;
            c.sample = std::uint32_t(request.sample * samples + n % samples);
            c.end = special_.sep, c.minimum = options.minimum;
            c.tokens.assign(std::min<int>(places, options.maximum - 1), MaskedCanvas::hidden);
            c.tokens.resize(places, c.end);
        }
        for (Written& w : unmask_canvases(model, std::move(some), options, seed)) {
            if (all.empty() || all.back().size() == samples) all.emplace_back();
            // A text that has no end in any place would be longer than max_length with [CLS] and [SEP].
            w.tokens.resize(std::min(int(w.tokens.size()), longest));
            w.came.resize(w.tokens.size());
            all.back().push_back(std::move(w));
        }
    }
    return all;
}

Texts UniVaeDecoder::write(const std::vector<DecodeRequest>& requests, SearchOptions options, std::uint64_t seed,
                           int refinements, Numbers* passes) {
    options.maximum = model_.options.max_length;
    const std::vector<DecodeRequest> own = own_part(requests, 64);
    Texts texts;
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

Vectors UniVaeDecoder::forced_logits(const DecodeRequest& request, const Tokens& ids) {
    start(&request, 1, 1);
    Vectors all;
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
