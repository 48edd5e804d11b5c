// SPDX-License-Identifier: MIT
#include "tools/generate/generate.h"

#include "tools/insertion_options.h"
#include "tools/sample_options.h"

namespace masquerade {
namespace {

std::vector<Option> declare_draws(Options& app, Writing& w) {
    return {app.number("--count", w.count, 1, 100000000, "number of samples (default of univae: 10)"),
            app.number("--temperature", w.temperature, 0.0, 100.0, "0: the most likely token (default)", "T"),
            app.number("--top-k", w.search.top_k, 1, 100000000, "sample from the K most likely tokens", "K"),
            app.number("--top-p", w.search.top_p, 0.0, 1.0,
                       "sample from the smallest set of tokens with total probability P", "P")};
}

Option declare_search(Options& app, Options& group, Writing& w) {
    group = app.group("how text is searched");
    group.number("--beam", w.search.beams, 1, 1024, "beam search of this width (default: 1, greedy)", "K");
    group.number("--n-best", w.search.n_best, 1, 1024, "write the best N of the beam, separated by tabs (default: 1)");
    group.number("--samples", w.search.samples, 1, 10000, "sample N targets for each source, separated by tabs");
    group.flag("--scores", w.scores, "each target is followed by a tab and its score");
    group.number("--length-penalty", w.search.length_penalty, -100.0, 100.0,
                 "alpha of the score, sum / length^alpha (default: 1)", "ALPHA");
    group.number("--no-repeat", w.search.no_repeat_ngram, 1, 1024, "never repeat a sequence of N tokens in a target");
    group.number("--repetition-penalty", w.search.repetition_penalty, 0.01, 100.0,
                 "above 1: make tokens that were already written less likely", "X");
    group.number("--minimum", w.search.minimum, 0, 65536, "minimum number of tokens before a target may end");
    const Option maximum = group.number("--maximum", w.search.maximum, 1, 65536,
                                        "maximum number of tokens of a target, including its end");
    group.value("--forbid", w.forbidden, "TOKEN", "a token that is never written; may be given several times")
        .one_at_a_time();
    group.flag("--bert4keras", w.search.bert4keras, "beam search as bert4keras does it");
    return maximum;
}

void declare_latents(Options& app, Options& group, Writing& w) {
    group = app.group("of univae");
    const Option ways[] = {
        group.flag("--reconstruct", w.reconstruct, "reconstruct every input line"),
        group.value("--resample", w.resample, "SLICE",
                    "reconstruct with these latents sampled again, given the others: A:B or layers:A:B, as in Python"),
        group.value("--swap", w.swap, "SLICE", "lines A<TAB>B: reconstruct A with these latents of B"),
        group.flag("--interpolate", w.interpolate, "lines A<TAB>B: sentences between A and B, separated by tabs"),
        group.flag("--codes", w.codes, "print the code of every input line, of a run with latent=vq or latent=fsq"),
        group.flag("--from-codes", w.from_codes, "lines are codes, as --codes prints them: write their sentences"),
    };
    for (const Option& one : ways)
        for (const Option& other : ways)
            if (&one != &other) one.excludes(other);
    group.number("--each", w.each, 1, 1000, "samples of --resample for each line, separated by tabs (default: 1)")
        .needs(ways[1]);
    group.number("--points", w.points, 2, 1000, "number of points of an interpolation (default: 5)").needs(ways[3]);
    declare_samples(group, w.sampling);
    group.number("--length", w.length, 1, 65536,
                 "wanted length in pieces, if free_length=true (default: drawn from the lengths in training)");
}

}  // namespace

void GenerateOptions::declare(Options& app) {
    draws = declare_draws(app, writing);
    maximum = declare_search(app, search, writing);
    declare_latents(app, latents, writing);
    targets = app.group("of unilm and seq2seq");
    targets.flag("--backward", writing.backward,
                 "lines are endings: write what precedes them; for a unilm trained on lm-reverse (default "
                 "if it was trained on no other objective that writes)");
    vectors = app.group("of runs with vectors of sentences: univae with latents, unilm, seq2seq");
    const Option nearest = vectors.input("--nearest", writing.nearest, "FILE",
                                         "for every input line, the nearest sentence of this file, and the cosine");
    vectors
        .number("--neighbours", writing.neighbours, 1, 1000000,
                "sentences of --nearest, separated by tabs (default: 1)")
        .needs(nearest);
    vectors.output("--vectors", writing.vectors, "FILE",
                   "save the vectors of the input lines for NumPy (.npy), one row for each");
    insertion = declare_insertion(app, writing.search.canvas);
    insertion.flag("--canvas", writing.from_canvas,
                   "lines are source<TAB>words to start with, in order; _ between two words: insert nothing there");
    insertion.flag("--show-rounds", writing.show_rounds,
                   "write each target as its rounds, with new words in [brackets]");
}

void GenerateOptions::expect_only_of(const Family& kind) const {
    const std::vector<Option> compares = vectors.given();
    const std::string silent = !compares.empty() ? compares[0].name() : writing.codes ? "--codes" : "";
    std::vector<Option> of_text = draws;
    for (const Options* group : {&search, &latents, &targets, &insertion})
        for (const Option& option : group->given()) of_text.push_back(option);
    for (const Option& option : of_text)
        if (!silent.empty() && option.given() && option.name() != silent)
            throw BadUsage(text(silent, " writes no text: leave out ", option.name()));
    if (kind.options == Family::no_options) return;  // a later check reports that this model does not generate
    for (const auto& [group, has] :
         {std::pair(&latents, Family::of_latents), {&targets, Family::of_search}, {&insertion, Family::of_insertion}})
        if (!(kind.options & has)) refuse_options(*group, writing.run, kind.name);
    if (kind.options != Family::of_insertion) return;
    for (const Option& option : search.given())
        if (option.name() != "--maximum" && option.name() != "--forbid")
            throw BadUsage(text(
                option.name(),
                " applies to models that write token by token; insertion takes --maximum, --forbid and its own options"));
}

}  // namespace masquerade
