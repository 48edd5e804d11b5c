// SPDX-License-Identifier: MIT
// The files of a checkpoint, and what ties them together, so that files of another step, seed or run are refused by
// name:
//
//   run.json            salt: a name of the run
//   config.json         salt: that of the run it was saved in
//   model.safetensors   metadata: step, and config: the checksum of the config.json beside it
//   state.safetensors   metadata: model, the checksum of the weights that its moments belong to
//
// A tie that a file lacks is not checked: runs of version 0.2 and files that were made elsewhere have none.
#pragma once
#include <string>

#include "engine/io/run_folder.h"
#include "engine/io/safetensors.h"
#include "engine/nn/parameters.h"

namespace masquerade {

// Writes model.safetensors into a folder that holds config.json.
void write_model(const std::string& folder, std::int64_t step, const Parameters& parameters);
// The metadata of the state that goes with these weights.
Metadata state_of(const Parameters& parameters);

// Opens model.safetensors of a step; BadInput if the step, config.json or run.json is another one's.
TensorFile open_model(const RunFolder& folder, std::int64_t step);
// Opens state.safetensors of a step; BadInput if it belongs to other weights than these.
TensorFile open_state(const RunFolder& folder, std::int64_t step, const Parameters& parameters);

// BadInput unless the file holds every parameter in its shape and type. No memory is asked for: sizes that no file
// bears out could ask for any amount.
void expect_shapes(const TensorFile& file, const Parameters& parameters);
// Reads every parameter; BadInput if a number is not finite.
void read_weights(const TensorFile& file, Parameters& parameters);

// A checksum of the weights, states included, for what belongs to them: a prior, an optimiser's moments.
std::uint64_t checksum_of(const Parameters& parameters);

}  // namespace masquerade
