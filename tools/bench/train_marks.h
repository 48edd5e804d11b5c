// SPDX-License-Identifier: MIT
// What ./bench train measures: models of fixed sizes, each with one batch of random tokens.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "models/nets/univae.h"

namespace masquerade {

struct TrainMark {
    std::string name;
    bool univae = false;
    UniVaeOptions model;  // of a BERT only the backbone counts
    AdamWRule rule;
    double learning_rate = 1e-4;
    std::vector<std::vector<int>> sentences;  // ids; of UniVAE [CLS] ... [SEP]
    std::vector<std::vector<int>> targets;    // of a BERT, one for each token

    // The number of tokens that a step is said to train on: a BERT all its tokens, UniVAE all but the [CLS] it writes from.
    int tokens() const;
    nlohmann::ordered_json sizes() const;
    // Describes what a peer needs to build and train the same.
    nlohmann::ordered_json about() const;
};

// The names of all marks, or of those that are measured on a device if none is named (docs/results/cpu.md, gpu.md).
std::vector<std::string> train_mark_names(std::optional<Device> device = {});
TrainMark train_mark(const std::string& name, std::uint64_t seed);

}  // namespace masquerade
