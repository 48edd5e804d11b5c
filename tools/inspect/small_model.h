// SPDX-License-Identifier: MIT
// Builds a small model of any family (univae, unilm ...), with any settings, and runs the forward and the backward of a
// training step, without the optimiser. The training text consists of questions from the built-in grammar or, if the
// settings name a task, of examples of this task.
#pragma once
#include <optional>

#include "models/runs/run.h"
#include "models/runs/training.h"

namespace masquerade {

// Whether the first of these words is a model, an objective or a setting (key=value) rather than the name of an op.
bool describes_model(const Strings& words);

// The small model that `words` describe, and one training step of it. The batch depends only on `words` and `seed`, so
// that steps in two storage types can be compared.
struct SmallStep {
    // The storage type is `type`. If `type` is empty, it is the precision in the settings.
    SmallStep(const Strings& words, std::uint64_t seed, std::optional<DType> type = {});
    // Begins the step, and computes and returns the loss. The tensors of the forward stay on the tape until
    // tape.end().
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
