// SPDX-License-Identifier: MIT
// Builds a small model of any kind, with any settings, and runs one training step. The text is questions from the
// built-in grammar or, if the settings name a task, examples of this task.
#pragma once
#include <optional>

#include "models/runs/run.h"
#include "models/runs/training.h"

namespace masquerade {

// Whether these words are a model's name or settings, not names of ops.
bool describes_model(const std::vector<std::string>& words);

// The model that `words` describe, and one training step of this model. The batch is always the same, so that steps in
// two types can be compared.
struct SmallStep {
    // The storage type is `type`; if `type` is empty, the precision in the settings.
    SmallStep(const std::vector<std::string>& words, std::uint64_t seed, std::optional<DType> type = {});
    // Begins the step and computes the loss. The tensors of the forward stay on the tape until tape.end().
    Tensor* loss();
    void backward(Tensor* loss);

    const Family& kind;
    const std::unique_ptr<RunSettings> settings;
    const TrainingText text;
    const DType storage;
    const std::unique_ptr<Run> run;
    const std::unique_ptr<Task> task;
    Arena arena;
    Tape tape;
    const std::string bucket;
};

}  // namespace masquerade
