// SPDX-License-Identifier: MIT
// Finds another legal value of any setting, by its type. Most new settings need no change here. If a setting needs a
// special value, the test says which line is missing here.
#pragma once
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "engine/io/config.h"
#include "models/runs/training.h"
#include "tests/folder.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

// Returns the folder of a task of files with two classes. Some letters are capitals.
inline std::string folder_of_files() {
    static const TemporaryFolder folder;
    for (const std::string label : {"one", "two"}) {
        std::filesystem::create_directories(folder.file(label));
        for (int i = 0; i < 80; i++)
            folder.write(text(label, "/", i, ".txt"),
                         label + (i % 2 ? "" : " A B ") + std::string(std::size_t(8 + i % 24), char('a' + i % 26)));
    }
    return folder.path;
}

// Returns the vocabulary of a new run. If the run adds its answers to an existing vocabulary, the existing vocabulary
// consists of letters.
inline Vocabulary vocabulary_of(const RunSettings& s, const TrainingText& text) {
    if (s.answers().empty()) return learn_vocabulary(s, text);
    std::vector<std::string> tokens(special_tokens, special_tokens + 5);
    for (const char* before : {"", "##"})
        for (char c = 'a'; c <= 'z'; c++) tokens.push_back(before + std::string(1, c));
    for (const std::string& answer : s.answers()) tokens.push_back(answer);
    return Vocabulary(std::move(tokens));
}

// Returns another legal value for settings for which neither the next number nor a common word is legal.
inline std::string special_value(const std::string& model, const std::string& key) {
    if (key == "objective")
        return model == "seq2seq"     ? "seq2seq:2,mass:1,diffusion:1"
               : model == "insertion" ? "kermit"
                                      : "unilm:2,lm:1,mlm:1";
    if (key == "length" && model == "classify") return "72";
    if (key == "positions" && model == "classify") return "200";
    if (key == "task") return model == "classify" ? "recall" : "sort";
    for (auto [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
             {"attention", "strided"},
             {"patterns", "0:1 window=1 | 1:2 stride=3"},
             {"buckets", "8"},
             {"groups", "4"},
             {"words", "60"},
             {"tokens", "words"},
             {"keep", "3"},
             {"masking", "spans"},
             {"span_longest", "1"},
             {"latent_deviation", "0.5"},
             {"norm", "rms"},
             {"ffn", "swiglu"},
             {"width", "32"},
             {"heads", "4"},
             {"latent_layers", "1"},
             {"latent_size", "8,6"},
             {"latent_at", "1"},
             {"latent_kinds", "gaussian,vq"},
             {"recompute", model == "flow" ? "steps" : "*layer.*"},
             {"points", "spiral"},
             {"flow_linear", "lu"},
             {"mask", "A full window=3; B causal window=4 | layers 1:: A full; B causal sees A[0]"},
             {"vocabulary", "150"},
             {"prior_sentences", "50"},
             {"level", "hard"},
             {"dashes", "9"},
             {"seed", "18446744073709551615"},
             {"batch_tokens", "150"},
             {"max_length", "12"},
             {"kappa", "30"},
             {"free_bits_of", "batch"},
             {"norm_eps", "0.001"},
             {"eps", "0.001"},
             {"optimiser", "apollo"},
             {"deviation", "0.1"},
             {"positions", "40"},
             {"redraw", "2"},
             {"sharing", "layerwise"},
             {"decoder", "insertion"},
             {"order", "frequency"},
             {"content_location", "joint"},
             {"finalization", "sequence"},
             {"canvas", "drawn"},
             {"weighting", "tokens"},
             {"masked", "0.3:0.7"},
             {"types", "3"},
             {"embedding", "8"},
             {"grid", "6"},
             {"source_type", "1"},
             {"target_type", "0"}})
        if (key == name) return value;
    return "";
}

inline bool accepts(Config& keys, const std::string& key, const std::string& value) {
    try {
        keys.set(key, value);
        return true;
    } catch (const BadUsage&) {
        return false;
    }
}

// Sets another value than the current one.
inline void change(Config& keys, const std::string& model, const std::string& key) {
    const std::string now = keys.value(key), special = special_value(model, key);
    std::vector<std::string> others = {
        special, now == "true" ? "false" : "true", "gaussian", "tanh", "bf16", "cyclical", "elu", "relu"};
    char* end = nullptr;
    const double number = std::strtod(now.c_str(), &end);
    if (end != now.c_str() && *end == '\0')
        others = {special, std::to_string(std::int64_t(number) + 1), text(number / 2 + 0.25)};
    for (const std::string& other : others)
        if (!other.empty() && other != now && accepts(keys, key, other)) return;
    FAIL("no other value is known for ", model, " ", key, "=", now, "; add one to special_value()");
}

}  // namespace masquerade
