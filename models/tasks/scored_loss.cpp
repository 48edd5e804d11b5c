// SPDX-License-Identifier: MIT
#include "models/tasks/scored_loss.h"

#include <algorithm>

#include "engine/tensor/numbers.h"

namespace masquerade {

ScoredLoss scored_loss(const TargetNet& net, const Objective& objective, const ObjectiveOptions& options,
                       const std::vector<const Sentence*>& sentences) {
    const Backbone& head = net.head_stack();
    constexpr std::size_t at_a_time = 32;
    ScoredLoss all;
    Arena arena(head.device(), Blocks::kept);
    Tape tape(arena, head.storage());
    double sum = 0;
    for (std::size_t first = 0; first < sentences.size(); first += at_a_time) {
        const std::size_t end = std::min(sentences.size(), first + at_a_time);
        const Batch batch = objective.batch(
            {sentences.begin() + std::ptrdiff_t(first), sentences.begin() + std::ptrdiff_t(end)}, 0, options);
        tape.begin("evaluate");
        const TargetNet::Losses scored = net.losses(tape, batch);
        const OnHost losses(scored.each->view());
        for (int m = 0; m < scored.count; m++) sum += losses[m];
        all.documents += batch.documents;
        all.tokens += scored.count;
        tape.end();
    }
    all.per_token = sum / double(std::max<std::int64_t>(all.tokens, 1));
    all.per_document = sum / double(std::max<std::int64_t>(all.documents, 1));
    return all;
}

}  // namespace masquerade
