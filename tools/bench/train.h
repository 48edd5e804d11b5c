// SPDX-License-Identifier: MIT
// What ./bench train measures: models of fixed sizes, each with one batch of random tokens.
// The full training step of this engine on the batch of a mark: all that ./bench train knows of models is here.
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
    UniVaeOptions model;  // of a BERT only the backbone counts
    AdamWRule rule;
    double learning_rate = 1e-4;
    std::vector<std::vector<int>> sentences;  // ids; of UniVAE [CLS] ... [SEP]
    std::vector<std::vector<int>> targets;    // of a BERT, one for each token

    // The number of tokens that a step is said to train on: a BERT all its tokens, UniVAE all but the [CLS] it writes
    // from.
    int tokens() const;
    nlohmann::ordered_json sizes() const;
    // Describes what a peer needs to build and train the same.
    nlohmann::ordered_json about() const;
};

// The names of all marks, or of those that are measured on a device if none is named (docs/results/cpu.md, gpu.md).
std::vector<std::string> train_mark_names(std::optional<Device> device = {});
TrainMark train_mark(const std::string& name, std::uint64_t seed);

// Multiply-adds of a record of the tape, if it is a linear layer or the loss: the same on every device. Attention's
// depend on its mask (OurTraining::attention_multiply_adds).
double count_products(const Record& record, bool backward);

// Watches steps: the seconds of each op, and the multiply-adds of all.
struct StepProfile : Clock {
    void before(const Record& record, bool backward) override {
        multiply_adds += count_products(record, backward);
        Clock::before(record, backward);
    }
    double multiply_adds = 0;
};

class OurTraining {
  public:
    // storage: f32, or bf16 with f32 masters. Without dropout the loss can be compared with another program's.
    OurTraining(const TrainMark& mark, DType storage, std::uint64_t seed, bool dropout, Device device = Device::cpu);
    ~OurTraining();

    // Noise, forward, backward, clipping, AdamW; the loss before the update. All of it has ended on return.
    double step();
    // The loss of the weights as they are, without dropout, with the noise of the first step.
    double loss();

    double norm() const { return optimiser_.norm(); }  // of the last gradient
    // The seconds of the last clipping and AdamW; on a device only while steps are waited for in parts.
    double update_seconds() const { return update_seconds_; }
    std::int64_t parameters() const { return parameters_.count(); }
    std::size_t activation_bytes() const { return arena_.planned_bytes(); }
    // Multiply-adds of the products that attention needs, forward and backward, over what its mask lets be seen.
    double attention_multiply_adds() const;
    void observe(Observer* observer) { tape_.observe(observer); }
    void ignore(Observer* observer) { tape_.ignore(observer); }

    // The masters, all in one row, and where each begins, in bytes.
    OnHost weights() const { return OnHost(parameters_.values()); }
    nlohmann::ordered_json weight_places() const;
    // The noise of the first step; null where the model has none.
    nlohmann::ordered_json noise() const;

    bool waits = false;  // the device is waited for before and after the update, too
    bool graph = true;   // on a device: a step as one graph, or op by op

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
    bool graph = true, deterministic = false;  // on a GPU: as ./train has them
    bool brief = false;                        // a few steps
};
class Bench;
// One row: full training steps, where their time goes, and how far the floor is.
void measure_training(Bench& bench, const TrainMark& mark, DType storage, const TrainWay& way);

}  // namespace masquerade
