// SPDX-License-Identifier: MIT
// Reads and writes the files of a checkpoint. Each file contains marks that say to which other files it belongs. A file
// that belongs to another step, seed or run is refused with a message that names the file.
//
//   run.json            salt: identifies the run
//   config.json         salt: the run in which this file was saved
//   model.safetensors   metadata: step, and config: the checksum of config.json in the same folder
//   state.safetensors   metadata: model, the checksum of the weights to which the optimiser state belongs
//
// A missing mark is not checked: old runs and files of other programs have no marks.
#pragma once
#include <string>

#include "engine/io/run_folder.h"
#include "engine/io/safetensors.h"
#include "engine/nn/parameters.h"

namespace masquerade {

// Writes model.safetensors into a folder that holds config.json.
void write_model(const std::string& folder, std::int64_t step, const Parameters& parameters);
// Returns the metadata that ties an optimiser state to these weights.
Metadata state_of(const Parameters& parameters);

// Opens model.safetensors of a step; BadInput if the step, config.json or run.json does not belong to it.
TensorFile open_model(const RunFolder& folder, std::int64_t step);
// Opens state.safetensors of a step; BadInput if it belongs to other weights.
TensorFile open_state(const RunFolder& folder, std::int64_t step, const Parameters& parameters);

// Throws BadInput unless the file contains every parameter with its shape and type. Call this before memory is
// allocated: a wrong config.json could request any amount.
void expect_shapes(const TensorFile& file, const Parameters& parameters);
// Reads every parameter; BadInput if a number is NaN or infinite.
void read_weights(const TensorFile& file, Parameters& parameters);

// A checksum of the weights and state tensors. A fitted prior and the optimiser state store it.
std::uint64_t checksum_of(const Parameters& parameters);

}  // namespace masquerade
