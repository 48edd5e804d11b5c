// SPDX-License-Identifier: MIT
#include "tools/generate/options.h"

#include "tools/run_options.h"

namespace masquerade {

// Options that are checked after parsing, because not every model or use of the program supports them.
struct Groups {
    std::vector<Option> draws;  // the options that say how samples are drawn
    Options search, vectors;
    Option maximum;
    OptionGroups of_text;  // the groups of options that say how text is written
};

namespace {

Groups declared(Options& app, Writing& w) {
    const std::vector<Option> draws{
        app.number("--count", w.count, 1, 100000000,
                   "number of samples, drawn without input lines (default of univae and flow: 10; of others: none, "
                   "they read lines). univae with conditional=true: number of targets for each input line (default: "
                   "1), each from new latents"),
        app.number(
            "--temperature", w.temperature, 0.0, 100.0,
            "0: always the most likely token (default: 1 with --top-k, --top-p or --samples, and 1 with --count for "
            "models without latents; otherwise 0); flow: factor of the noise (default: 1)",
            "T"),
        app.number("--top-k", w.search.top_k, 1, 100000000, "sample from the K most likely tokens", "K"),
        app.number("--top-p", w.search.top_p, 0.0, 1.0,
                   "sample from the smallest set of tokens with total probability P", "P")};

    Options search = app.group("of models that write text");
    search.number("--beam", w.search.beams, 1, 1024, "beam search of this width (default: 1, greedy)", "K");
    search.number("--n-best", w.search.n_best, 1, 1024, "write the best N of the beam, separated by tabs (default: 1)");
    search.number("--samples", w.search.samples, 1, 10000,
                  "sample the tokens of N targets for each source; the "
                  "targets are separated by tabs");
    search.flag("--scores", w.scores, "each target is followed by a tab and its score");
    search.number("--length-penalty", w.search.length_penalty, -100.0, 100.0,
                  "alpha of the score, sum of log p / length^alpha (default: 1)", "ALPHA");
    search.number("--no-repeat", w.search.no_repeat_ngram, 1, 1024, "never repeat a sequence of N tokens in a target");
    search.number("--repetition-penalty", w.search.repetition_penalty, 0.01, 100.0,
                  "above 1: make tokens that were already written less likely", "X");
    search.number("--minimum", w.search.minimum, 0, 65536, "minimum number of tokens before a target may end");
    const Option maximum = search.number("--maximum", w.search.maximum, 1, 65536,
                                         "maximum number of tokens of a target, including its end");
    search.value("--forbid", w.forbidden, "TOKEN", "a token that is never written; may be given several times")
        .one_at_a_time();
    search.flag("--bert4keras", w.search.bert4keras, "beam search by the rules of the library bert4keras");

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

    Options vectors = app.group(
        "for vectors of lines (univae, except with latent_layers=0; unilm, seq2seq, insertion, and classify, which "
        "writes no text; a flow has only --vectors)");
    const Option nearest = vectors.input("--nearest", w.nearest, "FILE",
                                         "for every input line, the nearest sentence of this file, and the cosine");
    vectors.number("--neighbours", w.neighbours, 1, 1000000, "sentences of --nearest, separated by tabs (default: 1)")
        .needs(nearest);
    const Option saved = vectors.output(
        "--vectors", w.vectors, "FILE",
        "save the vectors of the input lines, or the samples of a flow, for NumPy (.npy), one row for each");
    const Option states =
        vectors.choice("--states", w.states, {"mean", "cls"},
                       "use last hidden states as vectors: mean (over the tokens; default of all but univae, whose "
                       "vectors are its latents), or cls (the state of [CLS])");
    vectors
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
    return {draws,
            search,
            vectors,
            maximum,
            {{latents, Family::of_latents},
             {targets, Family::of_search},
             {insertion, Family::of_insertion | Family::of_latents},
             {any_order, Family::of_insertion | Family::of_latents | Family::of_search},
             {unmask, Family::of_search | Family::of_latents},
             {search, Family::of_latents | Family::of_search | Family::of_insertion}}};
}

// Throws BadUsage if the user gave an option that this kind of model does not support. Some options, such as --codes,
// make the program write no text. If the user gave one of them, `silent` must be its name, and options about written
// text are refused as well. Otherwise, `silent` must be "".
void expect_only_of(const Family& kind, const Groups& groups, const std::string& run, const std::string& silent) {
    std::vector<Option> given;
    for (const Option& option : groups.draws)
        if (option.given()) given.push_back(option);
    for (const auto& [group, bits] : groups.of_text)
        for (const Option& option : group.given()) given.push_back(option);
    for (const Option& option : given)
        if (!silent.empty() && option.name() != silent)
            throw BadUsage(silent, " writes no text: leave out ", option.name());
    if (kind.options == Family::no_options) return;  // a later check reports that this model does not generate
    for (const auto& [group, bits] : groups.of_text)
        if (!(kind.options & bits)) refuse_options(group, run, kind.name);
    if (kind.options != Family::of_insertion) return;
    for (const Option& option : groups.search.given())
        if (option.name() != "--maximum" && option.name() != "--forbid")
            throw BadUsage(option.name(),
                     " applies to models that write token by token; insertion takes --maximum, --forbid and its own "
                     "options");
}

}  // namespace

void GenerateOptions::declare(Options& app) { groups_ = std::make_shared<const Groups>(declared(app, how)); }

std::string GenerateOptions::help(const Options& app, const Strings& runs, bool all) const {
    return help_of_runs(app, groups_->of_text, runs, all);
}

RunWriter GenerateOptions::writer(Run& run, const Family& kind) {
    const std::vector<Option> given = groups_->vectors.given();
    // The options of the group `vectors` ask for vectors of the input lines, or for the nearest lines. Exception: for a
    // flow, which is a model of vectors, --vectors names the file for its samples.
    const bool compares = kind.options != Family::of_vectors && !given.empty();
    expect_only_of(kind, *groups_, how.run, compares ? given[0].name() : how.codes ? "--codes" : "");
    how.has_maximum = groups_->maximum.given();
    return compares ? neighbour_writer(run, how) : run.writer(how);
}

}  // namespace masquerade
