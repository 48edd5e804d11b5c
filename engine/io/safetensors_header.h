// SPDX-License-Identifier: MIT
// The header of a safetensors file, for engine/io/safetensors.cpp: read with every check there is, or
// made.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/io/file.h"
#include "engine/io/safetensors.h"

namespace masquerade {

struct SafetensorsHeader {
    std::string json;
    std::vector<StoredTensor> tensors;  // by offset; their data is not read
    std::vector<std::uint64_t> begin;   // of each, from `data`
    Metadata metadata;
    std::uint64_t data = 0, data_bytes = 0;  // of the file
};

// Checked against itself and the size of the file: every byte of the data belongs to exactly one tensor.
// BadInput.
SafetensorsHeader read_header(const FileReader& file);

// The JSON of these tensors one after the other, padded to 8 bytes, with the checksum in it.
std::string make_header(const std::vector<StoredTensor>& tensors, const Metadata& metadata);

// The digits of the checksum a header holds, none when it holds none; and those its tensors really have.
std::string checksum_said(const std::string& json);
std::string checksum_found(std::string json, const std::vector<StoredTensor>& tensors);

}  // namespace masquerade
