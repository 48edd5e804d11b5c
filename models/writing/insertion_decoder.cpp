// SPDX-License-Identifier: MIT
#include "models/writing/insertion_decoder.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/tensor/numbers.h"

namespace masquerade {
namespace {

double log_sum_exp(const Numbers& x) {
    const double top = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (double each : x) sum += std::exp(each - top);
    return top + std::log(sum);
}

}  // namespace

CanvasOptions canvas_options(const SearchOptions& options, Finalization finalization, int longest) {
    if (options.beams > 1 || options.samples > 0)
        throw BadUsage("insertion writes greedily, or in parallel (--parallel), but ",
                       options.beams > 1 ? text("a beam of ", options.beams, " was asked for")
                                         : text(options.samples, " samples of tokens were asked for"),
                       ": beams and samples are not possible");
    const SearchOptions usual;
    if (options.minimum != usual.minimum || options.no_repeat_ngram != usual.no_repeat_ngram ||
        options.repetition_penalty != usual.repetition_penalty || options.length_penalty != usual.length_penalty ||
        options.bert4keras)
        throw BadUsage(
            "--minimum, --no-repeat, --repetition-penalty, --length-penalty and --bert4keras apply to models that "
            "write token by token; insertion takes --maximum, --forbid and its own options");
    CanvasOptions how = options.canvas;
    how.finalization = finalization;
    how.longest = longest;
    check(how);
    return how;
}

InsertionDecoder::InsertionDecoder(const InsertionTransformer& model, const Objective& objective, InsertionForm form,
                                   const ObjectiveOptions& options, const Tokens& forbidden)
    : CanvasDecoder(model, objective, options), model_(model), form_(form), forbidden_(forbidden) {}

void InsertionDecoder::read(const Sentences& sources) {
    sources_ = sources;
    memory_ = Memory();
    if (reader_) reader_->read(tape_, sources, memory_);
}

Example InsertionDecoder::example(const Canvas& canvas) const {
    const Sentence& s = *sources_.at(canvas.source);
    Example e = canvas_example(form_, s.ids, canvas.tokens, s.name, options_);
    if (form_ == InsertionForm::either_side) {  // drops the labels of the slots in the source
        Labels own;
        for (int row : e.labels.rows)
            if (row + 1 >= int(s.ids.size())) own.push(row, 0);
        e.labels = own;
    }
    e.source = TokenRows();  // read() has already encoded the source
    return e;
}

// Computes, for each slot l and word c, log sum_k exp(a_k + z_kc). This is log p(c|l) or, if the model is joint (one
// softmax over the words of all slots), log p(c,l). z_kc is the logit of word c at slot l in component k of the
// mixture, and pi_k is the weight of this component. a_k is log pi_k minus a log-sum-exp of the logits of component k.
// This log-sum-exp runs over all words at slot l or, if the model is joint, over all words at all slots of the canvas.
SlotScores slot_scores(Tape& tape, const InsertionHead& head, Tensor* rows, const Batch& batch, const Tokens& forbidden,
                       int end) {
    const bool joint = head.options.joint;
    const InsertionHead::Slots s = head.slots(tape, rows, batch);
    const std::vector<int> none;
    Tensor* const normaliser = head.chosen(tape, s, none, none).lse;
    for (Tensor* t : {s.bias, s.mix, s.place, normaliser})
        if (t) tape.retain(t);  // read below, after all ops
    const OnHost lse(normaliser->view()), z(head.logits(tape, s)->view());
    const std::size_t K = head.options.mixture, V = z.view().columns();
    std::vector<char> never(V);  // for each token, whether it is never inserted
    for (int token : forbidden) never.at(token) = 1;
    never.at(end) = 1;
    const auto numbers = [](Tensor* t) { return t ? std::optional<OnHost>(OnHost(t->view())) : std::nullopt; };
    const auto bias = numbers(s.bias), mix = numbers(s.mix), place = numbers(s.place);
    SlotScores all(batch.documents);
    Numbers a(K), terms(K), logits(K * V);
    for (std::size_t g = 0; g < all.size(); g++) {
        const std::size_t from = (*s.first)[g], to = (*s.first)[g + 1];
        const auto over_slots = [&](auto of) {
            Numbers x;
            for (std::size_t m = from; m < to; m++) x.push_back(of(m));
            return log_sum_exp(x);
        };
        const double places = place ? over_slots([&](std::size_t m) { return (*place)[m]; }) : 0;
        for (std::size_t m = from; m < to; m++) {
            for (std::size_t k = 0; k < K && mix; k++) terms[k] = (*mix)[(joint ? g : m) * K + k];
            const double weights = mix ? log_sum_exp(terms) : 0;
            for (std::size_t k = 0; k < K; k++) {
                const auto of = [&](std::size_t slot) { return lse[slot * K + k]; };
                a[k] = (mix ? terms[k] - weights : 0) - (joint ? over_slots(of) : of(m));
            }
            for (std::size_t k = 0; k < K; k++) terms[k] = a[k] + lse[m * K + k];
            SlotScore score{-1, -INFINITY, 0, joint ? log_sum_exp(terms) : (*place)[m] - places};
            for (std::size_t k = 0; k < K; k++)
                for (std::size_t c = 0; c < V; c++)
                    logits[k * V + c] = z[(m * K + k) * V + c] + (bias ? (*bias)[g * V + c] : 0);
            const auto content = [&](std::size_t c) {
                for (std::size_t k = 0; k < K; k++) terms[k] = a[k] + logits[k * V + c];
                return (K == 1 ? terms[0] : log_sum_exp(terms)) - (joint ? score.place : 0);
            };
            for (std::size_t c = 0; c < V; c++)
                if (const double x = never[c] ? -INFINITY : content(c); x > score.content) {
                    score.content = x;
                    score.token = c;
                }
            score.end = content(end);
            all[g].push_back(score);
        }
    }
    return all;
}

SlotScores InsertionDecoder::score(const Canvases& canvases) {
    std::vector<Example> examples;
    std::vector<int> sources;
    for (const Canvas* c : canvases) {
        examples.push_back(example(*c));
        sources.push_back(c->source);
    }
    const Batch batch = batch_of(examples, sources);
    tape_.begin("score");
    Tensor* const rows = reader_ ? reader_->rows(tape_, batch, memory_) : model_.rows(tape_, batch);
    auto all = slot_scores(tape_, *model_.head, rows, batch, forbidden_, options_.insertion.end);
    tape_.end();
    return all;
}

}  // namespace masquerade
