// SPDX-License-Identifier: MIT
// The marks of ./bench train, and how they are trained. A mark is a model of fixed sizes, together with one batch of
// random tokens.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/sentences.h"
#include "engine/tape/trace.h"
#include "engine/train/trainer.h"
#include "models/nets/univae.h"
#include "tools/bench/bench.h"

namespace masquerade {

struct TrainMark {
    std::string name;
    bool univae = false;
    UniVaeOptions model;            // for a BERT, only model.backbone is used
    std::vector<Tokens> sentences;  // token ids; for UniVAE, each is [CLS] ... [SEP]
    std::vector<Tokens> targets;    // for a BERT: one label per token

    // Returns the number of tokens that a step predicts: for a BERT, all tokens; for UniVAE, all tokens except [CLS].
    int tokens() const;
    Json sizes() const;
};

// Returns the names of all marks (models of fixed sizes). If a device is given, returns only the names of the marks
// that are measured on this device by default (docs/results/cpu.md, gpu.md).
Strings train_mark_names(std::optional<Device> device = {});
TrainMark train_mark(const std::string& name, std::uint64_t seed);

// The task of training a mark (a model of fixed sizes) on its batch.
class MarkTask : public Task {
  public:
    MarkTask(DType storage, Device device) : parameters(storage, device) {}
    std::int64_t batch_tokens() const override { return 0; }
    void save(const std::string&) const override {}

    // Returns the multiply-adds of attention in one step, forward and backward, over the pairs of rows that the mask
    // permits. Call it after a step.
    virtual double attention_multiply_adds() const = 0;
    virtual Json noise() const;  // noise of the latest step; null if the model uses no noise

    Parameters parameters;
};

struct TrainWay {
    bool no_graph = false, deterministic = false;  // settings of ./train for a GPU
    bool brief = false;                            // run only a few steps, to try the bench
};

struct MarkTraining {
    // `storage` is f32, or bf16 with f32 master weights. If `dropout` is false, there is no dropout and each step has
    // the noise of the first step, so that the losses can be compared with those of another program.
    MarkTraining(const TrainMark& mark, DType storage, const Common& common, bool dropout, const TrainWay& way = {});

    const TrainOptions options;
    const std::unique_ptr<MarkTask> task;
    RunFolder nowhere;  // nothing is saved
    Trainer trainer;
};

// Measures the seconds of each op, and counts the multiply-adds of all linear layers and of the loss. The work of
// attention depends on the mask; MarkTask::attention_multiply_adds() counts it.
struct StepProfile : Clock {
    void before(const Record& record, bool backward) override;
    double multiply_adds = 0;
};

// Returns the offset of each tensor in parameters.values(), in bytes.
Json weight_places(const Parameters& parameters);

// Measures one row: the speed of full training steps, where their time goes, and how close they come to the speed of a
// large matrix product.
void measure_training(Bench& bench, const TrainMark& mark, DType storage, const TrainWay& way);

}  // namespace masquerade
