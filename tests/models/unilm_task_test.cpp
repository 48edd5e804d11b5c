// SPDX-License-Identifier: MIT
// Training UniLM by its settings.
#include <doctest/doctest.h>

#include <cmath>

#include "engine/tensor/numbers.h"
#include "models/unilm_task.h"

using namespace masquerade;

namespace {

UniLmSettings tiny(double label_smoothing) {
    UniLmSettings s;
    s.model.width = 16;
    s.model.heads = 2;
    s.model.inner = 24;
    s.model.layers = 2;
    s.model.deviation = 0.3;
    s.batch_tokens = 60;
    s.max_length = 12;
    s.max_target = 8;
    s.label_smoothing = label_smoothing;
    return s;
}

Vocabulary letters() {
    std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    for (char c = 'a'; c <= 'z'; c++) tokens.emplace_back(1, c);
    return Vocabulary(tokens);
}

struct Losses {
    double trained, held_out;
};
Losses losses(double label_smoothing) {
    UniLmRun run(tiny(label_smoothing), letters());
    TrainingText text;
    text.train = text.held_out = {"a b c d", "e f g", "h i j k l"};
    text.train_targets = text.held_out_targets = {"b d", "f", "i k"};
    const std::unique_ptr<Task> task = run.task(text);
    Arena arena(Device::cpu, false);
    Tape tape(arena, DType::f32);
    task->next_batch(1);
    tape.begin("step", 1, 1, true);
    Losses both;
    both.trained = number_at(task->loss(tape, 1, 0)->view(), 0);
    both.held_out = task->validate().at(0).value;
    return both;
}

}  // namespace

TEST_CASE(
    "unilm: label smoothing is of the loss that is trained on, not of the one that is reported of held-out "
    "text") {
    // The loss is linear in the smoothing.
    const Losses none = losses(0), some = losses(0.125), more = losses(0.25);
    CHECK(std::abs(some.trained - none.trained) > 0.01);
    CHECK(more.trained - none.trained == doctest::Approx(2 * (some.trained - none.trained)).epsilon(1e-4));
    CHECK(some.held_out == none.held_out);
    CHECK(UniLmSettings().label_smoothing == 0);
}
