// SPDX-License-Identifier: MIT
// Reads, checks and builds the header of a safetensors file, for engine/io/safetensors.cpp.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/io/file.h"
#include "engine/io/safetensors.h"

namespace masquerade {

struct SafetensorsHeader {
    std::string json;
    std::vector<StoredTensor> tensors;  // sorted by offset; StoredTensor::data is null
    std::vector<std::uint64_t> begin;   // offset of each tensor from the start of the data
    Metadata metadata;
    std::uint64_t data = 0, data_bytes = 0;  // offset and size of the data in the file
};

// Reads the header. Throws BadInput if the header contradicts itself or the size of the file. For example, every byte
// of the data must belong to exactly one tensor.
SafetensorsHeader read_header(const FileReader& file);

// Builds the JSON header of a file that stores these tensors one after the other. The header is padded to a multiple of
// 8 bytes and contains the checksum of the header and the data.
std::string make_header(const std::vector<StoredTensor>& tensors, const Metadata& metadata);

// checksum_said() returns the checksum that a header contains, or "" if the header contains none. checksum_found()
// computes the checksum of the header and the data. `json` must contain a checksum, whose digits are replaced by
// zeros for the computation.
std::string checksum_said(const std::string& json);
std::string checksum_found(std::string json, const std::vector<StoredTensor>& tensors);

}  // namespace masquerade
