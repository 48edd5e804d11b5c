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

// bert-small, bert-base: an encoder with a tied head, documents of 64 tokens whose second half is causal and
// sees the first, every position scored, dropout 0.1 of hidden states and attention probabilities.
// univae-small, univae-base: UniVAE of those sizes, sentences of 8 to 20 tokens, four latents of 16 numbers.
// univae-default: the model of ./train without arguments, as many such sentences as its batch takes.
// For a GPU, which those leave idle, batches of 16,384 tokens: univae-small-16k and univae-base-16k are the
// UniVAEs above with as many sentences as fit; unilm-base-16k is bert-base with 256 documents.
//
// All of them; of a device those that are measured if none is named.
std::vector<std::string> train_mark_names(std::optional<Device> device = {});
TrainMark train_mark(const std::string& name, std::uint64_t seed);

}  // namespace masquerade
