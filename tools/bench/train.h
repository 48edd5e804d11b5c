// SPDX-License-Identifier: MIT
// The marks of ./bench train, and the training step that is measured. A mark is a model of fixed sizes with one batch
// of random tokens.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/tape/trace.h"
#include "engine/tensor/numbers.h"
#include "engine/train/adamw.h"
#include "models/tasks/univae_objective.h"

namespace masquerade {

struct TrainMark {
    std::string name;
    bool univae = false;
    UniVaeOptions model;  // a BERT uses only the backbone
    OptimiserRule rule;
    double learning_rate = 1e-4;
    std::vector<std::vector<int>> sentences;  // token ids; for UniVAE: [CLS] ... [SEP]
    std::vector<std::vector<int>> targets;    // for a BERT: one label per token

    // The number of tokens that a step trains on: all tokens for a BERT; for UniVAE all except [CLS], from which it
    // generates.
    int tokens() const;
    nlohmann::ordered_json sizes() const;
    // Everything that a peer needs to build the same model and train it on the same batch.
    nlohmann::ordered_json about() const;
};

// Returns the names of all marks or, if a device is given, of the marks that are measured on it by default
// (docs/results/cpu.md, gpu.md).
std::vector<std::string> train_mark_names(std::optional<Device> device = {});
TrainMark train_mark(const std::string& name, std::uint64_t seed);

// Returns the multiply-adds of a record of the tape if its op is a linear layer or a loss, otherwise 0. The work of
// attention depends on the mask; OurTraining::attention_multiply_adds() counts it.
double count_products(const Record& record, bool backward);

// Measures the seconds of each op in a step, and counts the multiply-adds of all linear layers and losses.
struct StepProfile : Clock {
    void before(const Record& record, bool backward) override {
        multiply_adds += count_products(record, backward);
        Clock::before(record, backward);
    }
    double multiply_adds = 0;
};

class OurTraining {
  public:
    // storage: f32, or bf16 with f32 master weights. Without dropout, the loss can be compared with another program.
    OurTraining(const TrainMark& mark, DType storage, std::uint64_t seed, bool dropout, Device device = Device::cpu);
    ~OurTraining();

    // Runs one full step: noise, forward, backward, clipping, AdamW. Waits until the step has ended, and returns the
    // loss before the update.
    double step();
    // Returns the loss of the current weights, without dropout, with the noise of the first step. Updates nothing.
    double loss();

    double norm() const { return optimiser_.norm(); }  // gradient norm of the last step
    // The seconds that the last clipping and AdamW update took. On a GPU, valid only if `waits` is true.
    double update_seconds() const { return update_seconds_; }
    std::int64_t parameters() const { return parameters_.count(); }
    std::size_t activation_bytes() const { return arena_.planned_bytes(); }
    // Multiply-adds of the products in attention, forward and backward, over the pairs of rows that the mask permits.
    double attention_multiply_adds() const;
    void observe(Observer* observer) { tape_.observe(observer); }
    void ignore(Observer* observer) { tape_.ignore(observer); }

    // weights(): the f32 master weights of all tensors, in one row. weight_places(): the offset of each tensor in this
    // row, in bytes.
    OnHost weights() const { return OnHost(parameters_.values()); }
    nlohmann::ordered_json weight_places() const;
    // The noise of the first step; null if the model uses none.
    nlohmann::ordered_json noise() const;

    bool waits = false;  // whether a step waits for the device before and after the update
    bool graph = true;   // whether a step on a GPU is one CUDA graph; false: it runs op by op

  private:
    struct Model;
    struct Bert;
    struct Sentences;

    Parameters parameters_;
    std::unique_ptr<Model> model_;
    AdamW optimiser_;
    Arena arena_;
    Tape tape_;
    const std::uint64_t seed_;
    const double learning_rate_;
    const int width_;
    std::uint32_t step_ = 0;
    double update_seconds_ = 0;
};

struct TrainWay {
    bool graph = true, deterministic = false;  // settings of ./train for a GPU
    bool brief = false;                        // only a few steps
};
class Bench;
// Measures one row: full training steps, where their time goes, and how close that is to the device's limit.
void measure_training(Bench& bench, const TrainMark& mark, DType storage, const TrainWay& way);

}  // namespace masquerade
