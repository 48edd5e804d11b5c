// SPDX-License-Identifier: MIT
// Run::scores(): how much a model is surprised by lines of text.
#include <algorithm>
#include <numeric>

#include "engine/tensor/numbers.h"
#include "models/runs/target_run.h"
#include "models/runs/univae_run.h"
#include "models/runs/writer.h"
#include "models/tasks/univae_evaluation.h"

namespace masquerade {

std::vector<LineScore> Run::scores(const Strings&, int, std::uint64_t) const {
    throw BadUsage("a run of ", common().family(), " has no likelihood of lines of text");
}

std::vector<LineScore> TargetRun::scores(const Strings& lines, int, std::uint64_t seed) const {
    if (lines.empty()) return {};
    const Split split = at_tabs(lines);
    const bool pairs = !split.right[0].empty();
    for (std::size_t i = 0; i < lines.size(); i++)
        if (split.left[i].empty() || split.right[i].empty() == pairs)
            throw BadInput("line ", i + 1, " has ",
                           split.left[i].empty() ? "no text"
                           : pairs               ? "no target"
                                                 : "a target",
                           "; expected ", pairs ? "source<TAB>target" : "a text", i > 0 ? ", as line 1 is" : "");
    const auto part = std::find_if(mixture.parts.begin(), mixture.parts.end(), [&](const ObjectiveMixture::Part& p) {
        return pairs || !p.objective->has(Objective::pairs);
    });
    if (part == mixture.parts.end()) refuse_sentences("the text");
    const Objective& objective = *part->objective;
    const std::vector<Sentence> read = sentences(split.left, pairs ? split.right : Strings());
    std::vector<LineScore> all;
    if (objective.has(Objective::bound)) {
        for (const Sentence& s : read) {
            const LikelihoodBound one = bound(objective, {&s}, seed);
            all.push_back({one.per_document, int(one.tokens), {}, {}});
        }
        return all;
    }
    if (objective.has(Objective::canvases))
        throw BadUsage("a run of ", common().family(),
                       " has no likelihood of a line, which is a sum over all orders of insertion");
    const ObjectiveOptions options = measured_options();
    each_own_batch(
        net().head_stack(), pointers_to(read), 32, [&](const auto& few) { return objective.batch(few, 0, options); },
        [&](Tape& tape, const Batch& batch, std::size_t) {
            tape.begin("scores");
            const TargetNet::Losses losses = net().losses(tape, batch);
            const Numbers numbers = numbers_of(losses.each->view());
            for (int d = 0; d < batch.documents; d++) {
                LineScore& s = all.emplace_back();
                const auto [from, to] = std::pair(batch.labels.begin[d], batch.labels.begin[d + 1]);
                s.labels.assign(batch.labels.tokens.begin() + from, batch.labels.tokens.begin() + to);
                s.each.assign(numbers.begin() + from, numbers.begin() + to);
                s.nats = std::accumulate(s.each.begin(), s.each.end(), 0.0);
                s.tokens = to - from;
            }
            tape.end();
        },
        [&](const Sentence& s) { return objective.rows(s, options); });
    return all;
}

std::vector<LineScore> UniVaeRun::scores(const Strings& lines, int importance, std::uint64_t seed) const {
    const bool latent = model.options.latent_layers > 0;
    if (model.insertion || model.unmasks() || (latent && !model.space.has_density()))
        throw BadUsage("no likelihood of lines can be estimated with this run: ",
                       model.insertion || model.unmasks() ? "its decoder half writes in any order"
                                                          : "its latents have no density");
    const Split split = at_tabs(lines);
    for (std::size_t i = 0; i < lines.size(); i++)
        if (split.left[i].empty() || split.right[i].empty() == settings.pairs)
            throw BadInput("line ", i + 1, " has ",
                           split.left[i].empty() ? "no text"
                           : settings.pairs      ? "no target"
                                                 : "a target",
                           "; expected ", settings.pairs ? "source<TAB>target" : "a text");
    const std::vector<Sentence> read = sentences(split.left, settings.pairs ? split.right : Strings());
    const Numbers nats = importance_weighted_nll(model, pointers_to(read), importance, seed);
    std::vector<LineScore> all;
    for (std::size_t i = 0; i < read.size(); i++)
        all.push_back({nats[i], int(settings.pairs ? read[i].target.size() : read[i].ids.size() - 1), {}, {}});
    return all;
}

}  // namespace masquerade
