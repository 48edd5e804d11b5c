// SPDX-License-Identifier: MIT
// Run::scores(): how much a model is surprised by lines of text.
#include <algorithm>
#include <numeric>

#include "models/runs/target_run.h"
#include "models/runs/univae_run.h"
#include "models/runs/writer.h"
#include "models/tasks/univae_evaluation.h"

namespace masquerade {

namespace {

// Returns the parts of lines that are all pairs or, if `pairs` is false, all texts without a target. Throws BadInput if
// a line is different; the message ends with `why` if it is not the first line.
Split split_alike(const Strings& lines, bool pairs, const char* why) {
    Split split = at_tabs(lines);
    for (std::size_t i = 0; i < lines.size(); i++)
        if (split.left[i].empty() || split.right[i].empty() == pairs)
            throw BadInput("line ", i + 1, " has ",
                           split.left[i].empty() ? "no text"
                           : pairs               ? "no target"
                                                 : "a target",
                           "; expected ", pairs ? "source<TAB>target" : "a text", i > 0 ? why : "");
    if (!pairs) split.right.clear();
    return split;
}

}  // namespace

LineScores Run::scores(const Strings&, int, std::uint64_t) const {
    throw BadUsage("a run of ", common().family(), " has no likelihood of lines of text");
}

LineScores TargetRun::scores(const Strings& lines, int, std::uint64_t seed) const {
    if (lines.empty()) return {};
    const bool pairs = !at_tabs({lines[0]}).right[0].empty();
    const Split split = split_alike(lines, pairs, ", as line 1 is");
    const auto counts = [](const ObjectiveMixture::Part& p) { return p.objective->has(Objective::counts); };
    if (std::all_of(mixture.parts.begin(), mixture.parts.end(), counts))
        throw BadUsage("a run of objective=", this->objective(), " has no likelihood of a line: it predicts how many ",
                       "tokens are missing, and not which; expected a run with another objective as well");
    const auto part = std::find_if(mixture.parts.begin(), mixture.parts.end(), [&](const ObjectiveMixture::Part& p) {
        return !counts(p) && (pairs || !p.objective->has(Objective::pairs));
    });
    if (part == mixture.parts.end()) refuse_sentences("the text");
    const Objective& objective = *part->objective;
    const StoredSentences read = sentences(split.left, split.right);
    LineScores all;
    if (objective.has(Objective::bound)) {
        for (const Sentence& s : read) {
            const LikelihoodBound one = bound(objective, {&s}, seed);
            const double length = knows_length(objective) ? length_cost({&s}) : 0;
            all.push_back({one.per_document + length, int(one.tokens), {}, {}});
        }
        return all;
    }
    if (objective.has(Objective::canvases))
        throw BadUsage("a run of ", common().family(),
                       " has no likelihood of a line, which is a sum over all orders of insertion");
    each_measured_batch(objective, pointers_to(read), measured_options(),
                        [&](const Batch& batch, const Numbers& losses) {
                            for (int d = 0; d < batch.documents; d++) {
                                LineScore& s = all.emplace_back();
                                const auto [from, to] = std::pair(batch.labels.begin[d], batch.labels.begin[d + 1]);
                                s.labels.assign(batch.labels.tokens.begin() + from, batch.labels.tokens.begin() + to);
                                s.each.assign(losses.begin() + from, losses.begin() + to);
                                s.nats = std::accumulate(s.each.begin(), s.each.end(), 0.0);
                                s.tokens = to - from;
                            }
                        });
    return all;
}

LineScores UniVaeRun::scores(const Strings& lines, int importance, std::uint64_t seed) const {
    const bool latent = model.options.latent_layers > 0;
    if (model.insertion || model.unmasks() || (latent && !model.space.has_density()))
        throw BadUsage("no likelihood of lines can be estimated with this run: ",
                       model.insertion || model.unmasks() ? "its decoder half writes in any order"
                                                          : "its latents have no density");
    const Split split = split_alike(lines, settings.pairs, "");
    const StoredSentences read = sentences(split.left, split.right);
    const Numbers nats = importance_weighted_nll(model, pointers_to(read), importance, seed);
    LineScores all;
    for (std::size_t i = 0; i < read.size(); i++)
        all.push_back({nats[i], int(settings.pairs ? read[i].target.size() : read[i].ids.size() - 1), {}, {}});
    return all;
}

}  // namespace masquerade
