// SPDX-License-Identifier: MIT
// config.json, for models/runs/hugging_face/*.cpp.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "models/runs/hugging_face/hugging_face.h"

namespace masquerade {

// The path of a file of the folder. BadInput where it is not there, with what a folder of Hugging Face's holds.
std::string file_of(const std::string& folder, const std::string& name);

// The numbers of a stack and its activation, under Hugging Face's keys.
nlohmann::json hugging_face_sizes(const BackboneOptions& options);

// The text of config.json. BadUsage for a stack that is neither BERT nor RoFormer.
std::string hugging_face_config(const BackboneOptions& options, DType dtype, int pad);

}  // namespace masquerade
