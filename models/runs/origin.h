// SPDX-License-Identifier: MIT
// Functions that convert the origin of a run's text to the entry "data" of run.json, and back.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "data/training_text.h"

namespace masquerade {

nlohmann::json json_of(const TextOrigin& origin);
// Reads the origin from `run_json`, the contents of run.json. `path` is only used in error messages.
TextOrigin origin_of(const std::string& run_json, const std::string& path);

// Returns the hash of the files that the run reads itself, such as the files of a task (see Run::complete). `record`
// has the contents of run.json. Returns 0 if `record` has no hash.
std::uint64_t file_hash(const nlohmann::json& record);

// Returns the step of the run whose latents are the training data (TextOrigin::step), or -1 if there is no such run.
std::int64_t latent_step(const nlohmann::json& record);

}  // namespace masquerade
