// SPDX-License-Identifier: MIT
// A new model, as a command line describes it: its name, which comes first, and settings as key=value.
#pragma once
#include <string>
#include <vector>

#include "models/runs/run.h"
#include "tokenizer/trainer.h"

namespace masquerade {

// The family that the first word names: itself, or one of its objectives. If the first word is a setting: the first
// family.
inline const ModelKind& kind_of(const std::vector<std::string>& words) {
    if (words.empty() || words[0].find('=') != std::string::npos) return model_kinds().front();
    return find_model(words[0]);
}

inline void apply_words(const ModelKind& kind, const std::vector<std::string>& words, Config& config) {
    if (!words.empty() && words[0].find('=') == std::string::npos && words[0] != kind.name)
        config.set("objective", words[0]);
    for (std::size_t i = 0; i < words.size(); i++) {
        if (words[i].find('=') != std::string::npos)
            config.set(words[i]);
        else if (i > 0)
            throw BadUsage(text(words[i], " is neither a model, which comes first, nor key=value"));
    }
}

inline Vocabulary learn_vocabulary(const RunSettings& s, const TrainingText& t) {
    if (std::vector<std::string> words = s.words(); !words.empty()) return Vocabulary(std::move(words));
    TrainerOptions options;
    options.lower = !s.cased;
    std::vector<std::string> lines = t.train;
    lines.insert(lines.end(), t.train_targets.begin(), t.train_targets.end());
    return train_vocabulary(lines, s.vocabulary, options);
}

}  // namespace masquerade
