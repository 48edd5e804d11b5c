// SPDX-License-Identifier: MIT
// A tiny text and tiny settings for any family of families(). A family that is added is tested with them.
#pragma once
#include <algorithm>
#include <memory>
#include <string>

#include "data/grammar.h"
#include "models/runs/run.h"

namespace masquerade {

// Returns questions. Two in three are cut short, so that batches differ in size. If pairs are wanted, the target of
// each question is the next question.
inline TrainingText text_for(TextKind wanted) {
    TrainingText t;
    if (wanted == TextKind::none) return t;
    t.train = grammar_questions(3, 200);
    for (std::size_t i = 0; i < t.train.size(); i++)
        if (i % 3 > 0) t.train[i].resize(std::min<std::size_t>(t.train[i].size(), 9));
    t.held_out = grammar_questions(4, 12);
    if (wanted == TextKind::sentences) return t;
    t.train_targets = t.train;
    std::rotate(t.train_targets.begin(), t.train_targets.begin() + 1, t.train_targets.end());
    t.held_out_targets = t.held_out;
    return t;
}
inline TrainingText text_for(const Family& kind) { return text_for(kind.reads); }

// Returns settings of a model that trains in moments.
inline std::unique_ptr<RunSettings> tiny(const Family& kind) {
    std::unique_ptr<RunSettings> s = kind.settings();
    Config keys;
    s->declare(keys);
    for (const auto& [key, value] : std::initializer_list<std::pair<const char*, const char*>>{
             {"layers", "3"},          {"decoder_layers", "2"},
             {"latent_layers", "2"},   {"latent_size", "8"},
             {"width", "16"},          {"heads", "2"},
             {"inner", "32"},          {"deviation", "0.2"},
             {"dropout", "0.1"},       {"attention_dropout", "0.1"},
             {"vocabulary", "200"},    {"batch_tokens", "96"},
             {"max_length", "16"},     {"max_target", "12"},
             {"warmup", "3"},          {"learning_rate", "0.005"},
             {"schedule_start", "40"}, {"schedule_steps", "80"},
             {"prior_sentences", "0"}, {"held_out", "20"}})
        if (keys.has(key)) keys.set(key, value);
    return s;
}

}  // namespace masquerade
