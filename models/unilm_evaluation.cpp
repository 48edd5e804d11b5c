// SPDX-License-Identifier: MIT
#include "models/unilm_evaluation.h"

#include <algorithm>

#include "engine/tensor/numbers.h"

namespace masquerade {

ScoredLoss scored_loss(const UniLm& model, const Objective& objective, const ObjectiveOptions& options,
                       const std::vector<const Sentence*>& sentences) {
    constexpr std::size_t at_a_time = 32;
    ScoredLoss all;
    Arena arena(model.backbone.device(), false);
    Tape tape(arena, model.backbone.storage());
    double sum = 0;
    for (std::size_t first = 0; first < sentences.size(); first += at_a_time) {
        const std::size_t end = std::min(sentences.size(), first + at_a_time);
        const ObjectiveBatch batch = objective.batch(
            {sentences.begin() + std::ptrdiff_t(first), sentences.begin() + std::ptrdiff_t(end)}, 0, options);
        tape.begin("evaluate");
        const OnHost losses(
            model.backbone.token_losses(tape, model.hidden(tape, batch), batch.targets)->view());
        for (int m = 0; m < batch.target_count; m++) sum += losses[m];
        all.documents += batch.documents;
        all.tokens += batch.target_count;
        tape.end();
    }
    all.per_token = sum / double(std::max<std::int64_t>(all.tokens, 1));
    all.per_document = sum / double(std::max<std::int64_t>(all.documents, 1));
    return all;
}

}  // namespace masquerade
