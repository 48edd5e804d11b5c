// SPDX-License-Identifier: MIT
// Options that only some models support, such as UniVAE or insertion models; ./generate and ./evaluate share them.
#pragma once
#include <fmt/format.h>

#include "engine/base/processes.h"
#include "engine/io/checkpoint.h"
#include "models/density/prior.h"
#include "models/runs/measures.h"
#include "models/runs/run.h"
#include "models/writing/canvas.h"
#include "tools/program.h"

namespace masquerade {

// The groups of options that only some families of models support. The number of a group consists of bits of
// Family::Options; a family supports the group if its Family::options has at least one of these bits.
using OptionGroups = std::vector<std::pair<Options, unsigned>>;

// What --help-all of a program that reads runs prints.
constexpr const char* all_of_runs =
    "print all of this help even if RUN is given (RUN --help leaves out what RUN does not support)";

// Returns the text of --help. If the user named runs, leaves out the groups that none of their families supports,
// unless `all` is true.
inline std::string help_of_runs(const Options& app, const OptionGroups& groups, const Strings& runs, bool all) {
    unsigned supported = 0;
    for (const std::string& run : runs) supported |= family_of_run(run).options;
    for (auto [group, bits] : groups)
        if (!all && !runs.empty() && !(supported & bits)) group.hide();
    return app.help();
}

// Declares --precision, the type of the matrices and activations of a run. storage_of() (tools/options.h) returns it.
inline void declare_precision(Options& app, std::string& precision) {
    app.choice("--precision", precision, {"f32", "bf16"},
               "f32 (default), or bf16: round matrices and activations to bf16, as training with precision=bf16 does. "
               "If few texts are written at a time, their speed is limited by reading the matrices, and bf16 halves "
               "what is read");
}

// The weights of a run that is not trained further.
struct RunWeights {
    int average = 0;
    std::string precision = "f32";

    void declare(Options& app) {
        app.number("--average", average, 1, 1000000,
                   "use the mean weights of the last N checkpoints; 1: the weights of the last checkpoint, even if the "
                   "run has ema=. Default: the weights of the last checkpoint or, if the run has ema=, the moving "
                   "average of the weights");
        declare_precision(app, precision);
    }
    // Throws BadUsage if the processes that share the lines do not all have the same weights.
    std::unique_ptr<Run> load(const std::string& path, Device device) const {
        auto run = family_of_run(path).load_as(path, false, device, storage_of(precision));
        if (average > 0) run->average_checkpoints(average);
        if (!alone()) expect_equal(fmt::format("weights {:016x}", checksum_of(run->parameters)));
        return run;
    }
};

// Declares the options for drawing samples from a UniVAE.
inline void declare_samples(Options& group, SampleOptions& o) {
    group.input(
        "--prior", o.prior, "NAME",
        "prior of the latents: fitted (made after training; default if the run has one), uniform (the prior of the KL "
        "in training; despite its name, it is N(0, 1) with latent=gaussian), or the folder of a normalising flow that "
        "was trained on the latents of the run (./train flow points=RUN). Not for runs with source_prior=true, whose "
        "prior is computed from the source");
    group.number(
        "--latent-temperature", o.latent_temperature, 0.0, 100.0,
        fmt::format(
            "the fitted prior is a mixture of Gaussians; T scales the distance of a drawn latent from the mean of "
            "its Gaussian (default: {}). If the prior is a flow, T scales its noise (default: 1)",
            MixturePrior::default_temperature),
        "T");
    group.number("--refine", o.refine, 0, 1000, "how many times each sample is encoded and reconstructed (default: 0)");
}

// Declares the options for models that insert words into a text. Returns their group of options.
inline Options declare_insertion(Options& app, CanvasOptions& o) {
    Options group = app.group("of insertion, and of univae with decoder=insertion");
    group.flag(
        "--parallel", o.parallel,
        "in each round, insert a word into every slot (gap between two words), except where the model predicts the "
        "end: that nothing more belongs there (default: only into the best slot)");
    group.number("--end-penalty", o.end_penalty, -1000.0, 1000.0,
                 "subtracted from log p(end), the log probability that nothing more belongs into a slot", "X");
    group.number("--sure-end", o.sure_end, 0.0, 1.0,
                 "a slot ends only if p(end) is P or more; 0.5: more likely than all words together", "P");
    group.flag("--apart", o.apart,
               "let each slot decide alone what it inserts, as in Stern et al. 2019. Default: if inserting a word into "
               "either of two slots gives the same text (a second \"very\", before or after the first), add the "
               "probabilities of both slots, and insert the word at most once");
    group.number("--rounds", o.most_rounds, 1, 1000000, "maximum number of rounds");
    return group;
}

// Declares the options for models that do not write from left to right. Returns their group of options.
inline Options declare_any_order(Options& app, CanvasOptions& o) {
    Options group = app.group("of insertion, of univae with decoder=insertion, and of masked diffusion");
    group.number("--threshold", o.threshold, 0.0, 2.0,
                 "in each round or pass, write at every slot or hidden place whose best word has a probability of P or "
                 "more, and always at the best one; insertion: only with --parallel",
                 "P");
    return group;
}

// Declares the options of masked diffusion. Returns their group of options. if_sampled: "if tokens are sampled", for
// example.
inline Options declare_unmask(Options& app, UnmaskOptions& o, const char* if_sampled) {
    Options group = app.group(
        "of masked diffusion (objectives diffusion, block-diffusion, any-order; univae with decoder=diffusion)");
    group.choice("--order", o.order, unmask_orders(),
                 fmt::format("masked diffusion starts from hidden places ([MASK]s), and each pass writes some of them. "
                             "Which are written first: random (default {}), confidence (largest probability; default "
                             "otherwise), margin (largest difference between the probabilities of the best and the "
                             "second-best token), or entropy (smallest entropy)",
                             if_sampled));
    group.number("--per-pass", o.per_pass, 1, 65536, "places that a pass writes (default: 1)", "M");
    group.number("--steps", o.steps, 1, 65535,
                 "write all places in T passes, called steps (default: as many as --per-pass needs)", "T");
    group.choice("--plan", o.plan, unmask_plans(),
                 "with --steps: how the share of written places grows from step to step: linear (default) or cosine");
    group.number("--entropy-bound", o.entropy_bound, 0.0, 1e9,
                 "in each pass, write as many places as possible, in the order of --order, such that the sum of their "
                 "entropies, without the largest one, is at most G",
                 "G");
    group.number("--choice-temperature", o.choice_temperature, 0.0, 1e9,
                 "noise in the order of the places (default: 0)", "X");
    group.number(
        "--remask", o.remask, 0.0, 1.0,
        "with --steps: after each step, hide some written places again, at random, so that later steps rewrite "
        "them; ETA from 0 (none; default) to 1 (as many as possible)",
        "ETA");
    group.number("--block", o.block, 1, 65536,
                 "write blocks of K places, one block after the other, from left to right", "K");
    group.number(
        "--lengths", o.lengths, 1, 65536,
        "for runs with the training setting canvas=drawn or objective=any-order, which choose the length of a target "
        "before they write it: write a target for each of the L most likely lengths, and take the best (default: 1). "
        "For a sampled text, the length is sampled instead",
        "L");
    group.flag("--ends-last", o.ends_last, "write the end of a text only when all places before it are written");
    return group;
}

}  // namespace masquerade
