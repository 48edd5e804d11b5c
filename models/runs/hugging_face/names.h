// SPDX-License-Identifier: MIT
// The names in Hugging Face's folders: of files, of sizes in config.json and of tensors. For
// models/runs/hugging_face/*.cpp.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/nets/backbone.h"

namespace masquerade {

// The path of a file of the folder. BadInput where it is not there, with what a folder of Hugging Face's holds.
std::string file_of(const std::string& folder, const std::string& name);

// The numbers of a stack and its activation, under Hugging Face's keys.
nlohmann::json hugging_face_sizes(const BackboneOptions& options);

// The text of config.json. BadUsage for a stack that is neither BERT nor RoFormer.
std::string hugging_face_config(const BackboneOptions& options, DType dtype, int pad);

struct HuggingFaceName {
    std::string name;         // without "bert." or "roformer."; what begins with "cls." never has a prefix
    std::string path;         // of the parameter
    int part = 0, parts = 1;  // of its rows: key_value holds the keys, then the values

    bool of_head() const { return name.compare(0, 4, "cls.") == 0; }
    // "layer.0.attention.key_value.weight, keys"
    std::string place() const;
    // Its rows of a parameter, or of another tensor laid out as one.
    View rows(const View& parameter) const;
};

// In the order of the files. No name of a pre-LN stack's final norm: Hugging Face has none.
std::vector<HuggingFaceName> hugging_face_names(const BackboneOptions& options);

// Norms as files made from Google's call them: gamma for weight, beta for bias; other names as they are.
std::string old_norm_name(const std::string& name);

// "bert" or "roformer", by the positions.
const char* hugging_face_type(const BackboneOptions& options);

const std::string word_embeddings = "embeddings.word_embeddings.weight";
// The output matrix, which is the word embeddings once more, and the second name of its bias.
const std::string tied_matrix = "cls.predictions.decoder.weight", tied_bias = "cls.predictions.decoder.bias",
                  head_bias = "cls.predictions.bias";

}  // namespace masquerade
