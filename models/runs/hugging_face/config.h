// SPDX-License-Identifier: MIT
// config.json, for models/runs/hugging_face/*.cpp.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "models/runs/hugging_face/hugging_face.h"

namespace masquerade {

inline std::string config_file(const std::string& folder) { return folder + "/config.json"; }

// The numbers of a stack and its activation, under Hugging Face's keys.
nlohmann::json hugging_face_sizes(const BackboneOptions& options);

// The text of config.json. BadUsage for a stack that is neither BERT nor RoFormer.
std::string hugging_face_config(const BackboneOptions& options, DType dtype, int pad);

// Says which file a folder lacks. If the weights are a pickle or a checkpoint of TensorFlow: where it says how to
// convert them. BadInput.
[[noreturn]] void refuse_folder(const std::string& folder, const std::string& missing);

}  // namespace masquerade
