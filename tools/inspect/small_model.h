// SPDX-License-Identifier: MIT
// A model small enough to be looked at, of any kind and with any settings, in the middle of a training step. It
// reads questions of the built-in grammar.
#pragma once
#include "models/runs/run.h"
#include "tools/new_model.h"

namespace masquerade {

// Whether these words name a model or its settings.
bool describes_model(const std::vector<std::string>& words);

struct SmallModel {
    SmallModel(const std::vector<std::string>& words, std::uint64_t seed);
    const ModelKind& kind;
    std::unique_ptr<RunSettings> settings;
    TrainingText text;
    Vocabulary vocabulary;
};

// One step of it in a type; always on the same batch, so that steps in two types can be compared.
class SmallStep {
  public:
    SmallStep(const SmallModel& model, DType storage);
    // Begins the step on the tape; what the forward left there stays until tape.end().
    Tensor* loss();
    void backward(Tensor* loss);
    std::int64_t asked() const { return task_->batch_tokens(); }  // tokens

    std::unique_ptr<Run> run;

  private:
    std::unique_ptr<Task> task_;
    std::uint64_t seed_;

  public:
    Arena arena;
    Tape tape;
    const std::string bucket;
};

}  // namespace masquerade
