// SPDX-License-Identifier: MIT
// A model small enough to be looked at, of any kind and with any settings, in the middle of a training step. It
// reads questions of the built-in grammar.
#pragma once
#include <optional>

#include "models/runs/run.h"
#include "models/runs/training.h"

namespace masquerade {

// Whether these words name a model or its settings.
bool describes_model(const std::vector<std::string>& words);

// The model of these words and seed, and one step of it; always on the same batch, so that steps in two types can be
// compared.
struct SmallStep {
    // Stored in the precision of its settings, unless another type is given.
    SmallStep(const std::vector<std::string>& words, std::uint64_t seed, std::optional<DType> type = {});
    // Begins the step on the tape; what the forward left there stays until tape.end().
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
