// SPDX-License-Identifier: MIT
// What a model knows of text it has not seen.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "data/sentences.h"
#include "engine/tensor/numbers.h"
#include "models/tasks/objective.h"

namespace masquerade {

struct ScoredLoss {
    double per_token = 0;     // nats
    double per_document = 0;  // nats
    std::int64_t documents = 0, tokens = 0;
};

// Of an objective, over whole sentences or pairs; `head` is the stack that predicts. Objectives that draw (mlm, plm, mass)
// draw as in step 0.
template <class Model, class O>
ScoredLoss scored_loss(const Model& model, const Backbone& head, const O& objective,
                       const ObjectiveOptions& options, const std::vector<const Sentence*>& sentences) {
    constexpr std::size_t at_a_time = 32;
    ScoredLoss all;
    Arena arena(head.device(), Blocks::kept);
    Tape tape(arena, head.storage());
    double sum = 0;
    for (std::size_t first = 0; first < sentences.size(); first += at_a_time) {
        const std::size_t end = std::min(sentences.size(), first + at_a_time);
        const auto batch = objective.batch(
            {sentences.begin() + std::ptrdiff_t(first), sentences.begin() + std::ptrdiff_t(end)}, 0, options);
        tape.begin("evaluate");
        const OnHost losses(head.token_losses(tape, model.hidden(tape, batch), batch.targets)->view());
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
