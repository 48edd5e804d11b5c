// SPDX-License-Identifier: MIT
// Reads and writes the files of a checkpoint. The files contain entries that say which files belong together. A file
// that belongs to another step, model or run is refused with a message that names the file.
//
//   run.json            "salt" is a text that identifies the run
//   config.json         "salt" identifies the run in which this file was saved
//   model.safetensors   "step" is the training step; "config" is the checksum of config.json in the same folder
//   state.safetensors   "model" is the checksum of the weights to which the optimiser state belongs
//
// A missing entry is not an error, because old runs and files of other programs do not have these entries.
#pragma once
#include <string>

#include "engine/io/run_folder.h"
#include "engine/io/safetensors.h"
#include "engine/nn/parameters.h"

namespace masquerade {

// Writes model.safetensors into a folder that holds config.json.
void write_model(const std::string& folder, std::int64_t step, const Parameters& parameters);
// Returns the metadata to be stored in state.safetensors: the checksum of the weights to which the optimiser state
// belongs.
Metadata state_of(const Parameters& parameters);

// Opens model.safetensors of a step. Throws BadInput if the file was saved at another step, with another config.json or
// in another run.
TensorFile open_model(const RunFolder& folder, std::int64_t step);
// Opens state.safetensors of a step. Throws BadInput if it was saved with other weights than those in `parameters`.
TensorFile open_state(const RunFolder& folder, std::int64_t step, const Parameters& parameters);

// Throws BadInput if the file does not contain every parameter with its shape, in the type of the master weights
// (Parameters::dtype()). Call this before the memory of the parameters is allocated, because a wrong config.json could
// request any amount of memory.
void expect_shapes(const TensorFile& file, const Parameters& parameters);
// Reads every parameter from the file. Throws BadInput if a parameter is missing, or if one of its numbers is NaN or
// infinite.
void read_weights(const TensorFile& file, Parameters& parameters);

// Returns a checksum of the weights and of the model's state tensors (Parameters::add_state). The files of a fitted
// prior and of the optimiser state store this checksum, so that these files are not used with other weights.
std::uint64_t checksum_of(const Parameters& parameters);

}  // namespace masquerade
