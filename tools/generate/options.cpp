// SPDX-License-Identifier: MIT
#include "tools/generate/options.h"

namespace masquerade {

void GenerateOptions::declare(Options& app) {
    Writing& w = how;
    draws_ = {
        app.number("--count", w.count, 1, 100000000,
                   "number of samples, drawn without input lines (default of univae and flow: 10; of others: none, "
                   "they read lines). univae with conditional=true: number of targets for each input line (default: "
                   "1), each from new latents"),
        app.number(
            "--temperature", w.temperature, 0.0, 100.0,
            "0: always the most likely token (default: 1 with --top-k, --samples or a --top-p below 1, and 1 with "
            "--count for models without latents; otherwise 0); flow: factor of the noise (default: 1)",
            "T"),
        app.number("--top-k", w.search.top_k, 1, 100000000, "sample from the K most likely tokens", "K"),
        app.number("--top-p", w.search.top_p, 0.0, 1.0,
                   "sample from the smallest set of tokens with total probability P", "P")};

    search_ = app.group("of models that write text");
    search_.number("--beam", w.search.beams, 1, 1024, "beam search of this width (default: 1, greedy)", "K");
    search_.number("--n-best", w.search.n_best, 1, 1024,
                   "write the best N of the beam, separated by tabs (default: 1)");
    search_.number("--samples", w.search.samples, 1, 10000,
                   "sample the tokens of N targets for each source; the "
                   "targets are separated by tabs");
    search_.flag("--scores", w.scores, "each target is followed by a tab and its score");
    search_.number("--length-penalty", w.search.length_penalty, -100.0, 100.0,
                   "alpha of the score, sum of log p / length^alpha (default: 1)", "ALPHA");
    search_.number("--no-repeat", w.search.no_repeat_ngram, 1, 1024, "never repeat a sequence of N tokens in a target");
    search_.number("--repetition-penalty", w.search.repetition_penalty, 0.01, 100.0,
                   "above 1: make tokens that were already written less likely", "X");
    search_.number("--minimum", w.search.minimum, 0, 65536, "minimum number of tokens before a target may end");
    search_.number("--maximum", w.search.maximum, 1, longest_target,
                   "maximum number of tokens of a target, including its end (default: as many as the run can write)");
    search_.value("--forbid", w.forbidden, "TOKEN", "a token that is never written; may be given several times")
        .one_at_a_time();
    search_.flag("--bert4keras", w.search.bert4keras, "beam search by the rules of the library bert4keras");

    Options latents = app.group("of univae");
    const Option ways[] = {
        latents.flag(
            "--reconstruct", w.reconstruct,
            "reconstruct every input line; if the run was trained with pairs=true, write the target of every source"),
        latents.value(
            "--resample", w.resample, "SLICE",
            "reconstruct, but draw a part of the latents again, given the others; SLICE names the part: I:J (the "
            "latents of all layers are one vector, the lowest layer first; elements I to J-1 of it, as in Python) or "
            "layers:I:J (all latents of the latent layers I to J-1, counted from 0 at the lowest latent layer)"),
        latents.value("--swap", w.swap, "SLICE", "lines A<TAB>B: reconstruct A with this part of the latents of B"),
        latents.flag("--interpolate", w.interpolate, "lines A<TAB>B: sentences between A and B, separated by tabs"),
        latents.flag("--codes", w.codes,
                     "print the code of every input line: the indices of its latents (of runs with "
                     "latent=vq or latent=fsq)"),
        latents.flag("--from-codes", w.from_codes, "lines are codes, as --codes prints them: write their sentences"),
        latents.input("--from-vectors", w.from_vectors, "FILE",
                      "write a sentence for each row of this .npy file, such as the samples of a flow"),
    };
    for (const Option& one : ways)
        for (const Option& other : ways)
            if (&one != &other) one.excludes(other);
    latents.number("--each", w.each, 1, 1000, "samples of --resample for each line, separated by tabs (default: 1)")
        .needs(ways[1]);
    latents.number("--points", w.points, 2, 1000, "number of points of an interpolation (default: 5)").needs(ways[3]);
    declare_samples(latents, w.sampling);
    latents.number("--length", w.length, 1, 65536,
                   "desired length in tokens, for runs with free_length=true (default: drawn from the lengths in "
                   "training)");

    Options targets = app.group("of unilm");
    targets.flag(
        "--backward", w.backward,
        "input lines are endings: write what comes before them. For a run trained on lm-reverse; the default if "
        "no other objective of the run can generate text");

    vectors_ = app.group(
        "for vectors of lines (univae, except with latent_layers=0; unilm, seq2seq, insertion, and classify, which "
        "writes no text; a flow has only --vectors)");
    const Option nearest = vectors_.input("--nearest", w.nearest, "FILE",
                                          "for every input line, the nearest sentence of this file, and the cosine");
    vectors_.number("--neighbours", w.neighbours, 1, 1000000, "sentences of --nearest, separated by tabs (default: 1)")
        .needs(nearest);
    const Option saved = vectors_.output(
        "--vectors", w.vectors, "FILE",
        "save the vectors of the input lines, or the samples of a flow, for NumPy (.npy), one row for each");
    const Option states =
        vectors_.choice("--states", w.states, {"mean", "cls"},
                        "use last hidden states as vectors: mean (over the tokens; default of all but univae, whose "
                        "vectors are its latents), or cls (the state of [CLS])");
    vectors_
        .flag("--posterior", w.posterior,
              "univae: draw the latents of --vectors from their posterior (default: its mean)")
        .needs(saved)
        .excludes(nearest)
        .excludes(states);

    Options insertion = declare_insertion(app, w.search.canvas);
    Options any_order = declare_any_order(app, w.search.canvas);
    any_order.flag(
        "--canvas", w.from_canvas,
        "start from given words, and add the missing ones: a line is source<TAB>words. Insertion: a _ between two "
        "words keeps this slot closed. Diffusion: the words include a [MASK] for each missing token. If gaps is one "
        "of the run's objectives (objective=), write no [MASK]: the model predicts where tokens are missing, and how "
        "many");
    any_order.flag(
        "--show-rounds", w.show_rounds,
        "write each target after every round (diffusion: after every pass), with its new words in [brackets]");
    Options unmask = declare_unmask(app, w.search.unmask, "if tokens are sampled");
    of_text_ = {{latents, Family::of_latents},
                {targets, Family::of_search},
                {insertion, Family::of_insertion | Family::of_latents},
                {any_order, Family::of_insertion | Family::of_latents | Family::of_search},
                {unmask, Family::of_search | Family::of_latents},
                {search_, Family::of_latents | Family::of_search | Family::of_insertion}};
}

std::string GenerateOptions::help(const Options& app, const Strings& runs, bool all) const {
    return help_of_runs(app, of_text_, runs, all);
}

void GenerateOptions::expect_only_of(const Family& kind, const std::string& silent) const {
    const auto refuse_if_silent = [&](const Option& option) {
        if (!silent.empty() && option.given() && option.name() != silent)
            throw BadUsage(silent, " writes no text: leave out ", option.name());
    };
    for (const Option& option : draws_) refuse_if_silent(option);
    for (const auto& [group, bits] : of_text_)
        for (const Option& option : group.given()) refuse_if_silent(option);
    if (kind.options == Family::no_options) return;  // a later check reports that this model does not generate
    for (const auto& [group, bits] : of_text_)
        if (!(kind.options & bits)) refuse_options(group, how.run, kind.name);
    if (kind.options != Family::of_insertion) return;
    for (const Option& option : search_.given())
        if (option.name() != "--maximum" && option.name() != "--forbid")
            throw BadUsage(option.name(),
                           " applies to models that write token by token; insertion takes --maximum, --forbid and its "
                           "own options");
}

RunWriter GenerateOptions::writer(Run& run, const Family& kind) {
    const auto given = vectors_.given();
    // The options of the group `vectors_` ask for vectors of the input lines, or for the nearest lines. Exception: for
    // a flow, which is a model of vectors, --vectors names the file for its samples.
    const bool compares = kind.options != Family::of_vectors && !given.empty();
    expect_only_of(kind, compares ? given[0].name() : how.codes ? "--codes" : "");
    return compares ? neighbour_writer(run, how) : run.writer(how);
}

}  // namespace masquerade
