// SPDX-License-Identifier: MIT
// config.json, for models/runs/hugging_face/*.cpp.
#pragma once
#include <string>

#include "models/runs/hugging_face/hugging_face.h"

namespace masquerade {

inline std::string config_file(const std::string& folder) { return folder + "/config.json"; }

// Its text. BadUsage for a stack that is neither BERT nor RoFormer.
std::string hugging_face_config(const BackboneOptions& options, DType dtype, int pad);

// Why a folder without what is looked for is none that can be read, and what to do: PyTorch's pickles and
// TensorFlow's checkpoints are to be converted. BadInput.
[[noreturn]] void refuse_folder(const std::string& folder, const std::string& missing);

}  // namespace masquerade
