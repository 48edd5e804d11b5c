// SPDX-License-Identifier: MIT
// The marks of ./bench train, and the training step that is measured. A mark is a model of fixed sizes, together with
// one batch of random tokens.
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
    UniVaeOptions model;  // for a BERT, only model.backbone is used
    OptimiserRule rule;
    double learning_rate = 1e-4;
    std::vector<std::vector<int>> sentences;  // token ids; for UniVAE, each is [CLS] ... [SEP]
    std::vector<std::vector<int>> targets;    // for a BERT: one label per token

    // Returns the number of tokens that a step predicts: for a BERT, all tokens; for UniVAE, all tokens except [CLS].
    int tokens() const;
    nlohmann::ordered_json sizes() const;
    // Returns the batch and the settings of the optimiser. Another program that trains the same model needs both, and
    // sizes().
    nlohmann::ordered_json about() const;
};

// Returns the names of all marks. If a device is given, returns only the names of the marks that are measured on this
// device by default (docs/results/cpu.md, gpu.md).
std::vector<std::string> train_mark_names(std::optional<Device> device = {});
TrainMark train_mark(const std::string& name, std::uint64_t seed);

// Returns the multiply-adds of the forward or, if `backward` is true, of the backward of a record (one computed op).
// Only linear layers and losses count; for other ops, returns 0. The work of attention depends on the mask;
// OurTraining::attention_multiply_adds() counts it.
double count_products(const Record& record, bool backward);

// Measures the seconds of each op, and counts the multiply-adds of all linear layers and losses.
struct StepProfile : Clock {
    void before(const Record& record, bool backward) override {
        multiply_adds += count_products(record, backward);
        Clock::before(record, backward);
    }
    double multiply_adds = 0;
};

class OurTraining {
  public:
    // `storage` is f32, or bf16 with f32 master weights. If `dropout` is false, the loss can be compared with that of
    // another program.
    OurTraining(const TrainMark& mark, DType storage, std::uint64_t seed, bool dropout, Device device = Device::cpu);
    ~OurTraining();

    // Runs one full training step: noise, forward, backward, clipping, AdamW. Waits until the step has ended, and
    // returns the loss before the update.
    double step();
    // Returns the loss for the current weights, without dropout and with the noise of the first step. Changes no
    // weights.
    double loss();

    double norm() const { return optimiser_.norm(); }  // gradient norm of the last step
    // Returns the seconds that clipping and the AdamW update took in the last step. On a GPU, this is valid only if
    // `waits` is true.
    double update_seconds() const { return update_seconds_; }
    std::int64_t parameters() const { return parameters_.count(); }
    std::size_t activation_bytes() const { return arena_.planned_bytes(); }
    // Returns the multiply-adds of attention in one step, forward and backward, over the pairs of rows that the mask
    // permits.
    double attention_multiply_adds() const;
    void observe(Observer* observer) { tape_.observe(observer); }
    void ignore(Observer* observer) { tape_.ignore(observer); }

    // weights() returns the f32 master weights of all tensors, one tensor after the other. weight_places() returns the
    // offset of each tensor in them, in bytes.
    OnHost weights() const { return OnHost(parameters_.values()); }
    nlohmann::ordered_json weight_places() const;
    // Returns the noise of the first step; null if the model uses no noise.
    nlohmann::ordered_json noise() const;

    bool waits = false;  // whether a step waits for the device before and after the update
    bool graph = true;   // whether a step on a GPU is one CUDA graph; if not, it runs op by op

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
    bool brief = false;                        // run only a few steps, to try the bench
};
class Bench;
// Measures one row: the speed of full training steps, where their time goes, and how close they come to the speed of a
// large matrix product.
void measure_training(Bench& bench, const TrainMark& mark, DType storage, const TrainWay& way);

}  // namespace masquerade
