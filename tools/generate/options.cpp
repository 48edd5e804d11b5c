// SPDX-License-Identifier: MIT
#include "tools/generate/generate.h"

#include "tools/insertion_options.h"
#include "tools/sample_options.h"

namespace masquerade {
namespace {

Option declare_search(Options& app, Options& group, Writing& w) {
    app.number("--count", w.count, 1, 100000000, "so many samples (default of univae: 10)");
    app.number("--temperature", w.temperature, 0.0, 100.0, "0: the most likely token (default)", "T");
    app.number("--top-k", w.search.top_k, 1, 100000000, "draw among the K most likely", "K");
    app.number("--top-p", w.search.top_p, 0.0, 1.0, "draw among the fewest that have share P", "P");

    group = app.group("how text is searched");
    group.number("--beam", w.search.beams, 1, 1024, "beam search of this width (default: 1, greedy)", "K");
    group.number("--n-best", w.search.n_best, 1, 1024, "write the best N of the beam, with tabs between (default: 1)");
    group.number("--samples", w.search.samples, 1, 10000, "draw N targets for each source, with tabs between");
    group.flag("--scores", w.scores, "each target is followed by a tab and its score");
    group.number("--length-penalty", w.search.length_penalty, -100.0, 100.0,
                 "alpha of the score, sum / length^alpha (default: 1)", "ALPHA");
    group.number("--no-repeat", w.search.no_repeat_ngram, 1, 1024, "no run of N tokens twice in a target");
    group.number("--repetition-penalty", w.search.repetition_penalty, 0.01, 100.0,
                 "above 1: of tokens that were written", "X");
    group.number("--minimum", w.search.minimum, 0, 65536, "tokens before a target may end");
    const Option maximum =
        group.number("--maximum", w.search.maximum, 1, 65536, "tokens of a target at most, its end counted");
    group.value("--forbid", w.forbidden, "TOKEN", "a token that is never written; once for each of them")
        .one_at_a_time();
    group.flag("--bert4keras", w.search.bert4keras, "beam search as bert4keras does it");
    return maximum;
}

void declare_latents(Options& app, Options& group, Writing& w) {
    group = app.group("of univae");
    const Option ways[] = {
        group.flag("--reconstruct", w.reconstruct, "write every input line again"),
        group.value("--resample", w.resample, "SLICE",
                    "the same with these latents drawn anew, given the others: A:B or layers:A:B"),
        group.value("--swap", w.swap, "SLICE", "lines A<TAB>B: A with these latents of B"),
        group.flag("--interpolate", w.interpolate, "lines A<TAB>B: points between them, with tabs"),
    };
    for (const Option& one : ways)
        for (const Option& other : ways)
            if (&one != &other) one.excludes(other);
    group.number("--each", w.each, 1, 1000, "so many draws of --resample for each line, with tabs between (default: 1)")
        .needs(ways[1]);
    group.number("--points", w.points, 2, 1000, "points of an interpolation (default: 5)").needs(ways[3]);
    declare_samples(group, w.sampling);
    group.number("--length", w.length, 1, 65536,
                 "pieces wanted, of a model with free_length=true (default: as sentences of training have)");
}

}  // namespace

void GenerateOptions::declare(Options& app) {
    maximum = declare_search(app, search, writing);
    declare_latents(app, latents, writing);
    targets = app.group("of unilm and seq2seq");
    targets.flag("--backward", writing.backward,
                 "lines are endings: write what comes before them, of a unilm trained on lm-reverse (the "
                 "default where it was trained on nothing else that writes)");
    insertion = declare_insertion(app, writing.search.canvas);
    insertion.flag(
        "--canvas", writing.from_canvas,
        "lines are source<TAB>words to start with, in their order; _ between two: nothing comes between them");
    insertion.flag("--show-rounds", writing.show_rounds,
                   "each target is written as its rounds, what is new in [brackets]");
}

void GenerateOptions::expect_only_of(const Family& kind) const {
    if (kind.options == Family::no_options) return;  // such a model does not generate at all; a later check says so
    for (const auto& [group, has] :
         {std::pair(&latents, Family::of_latents), {&targets, Family::of_search}, {&insertion, Family::of_insertion}})
        if (!(kind.options & has)) refuse_options(*group, writing.run, kind.name);
    if (kind.options != Family::of_insertion) return;
    for (const Option& option : search.given())
        if (option.name() != "--maximum" && option.name() != "--forbid")
            throw BadUsage(text(
                option.name(),
                " is of models that write token by token; insertion takes --maximum, --forbid and the options of insertion"));
}

}  // namespace masquerade
