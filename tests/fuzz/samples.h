// SPDX-License-Identifier: MIT
// Good files, made here: a BERT of a few numbers in one file and in shards, a run of three steps, a tokenizer.
#pragma once
#include <string>

namespace masquerade::fuzz {

// The folder that holds them, made when first asked for: bert/ (config.json, model.safetensors, vocab.txt), shards/
// (the same in two files with their index), run/, tokenizer.json and settings.txt. It goes when the program ends well.
const std::string& samples();

// A file without the checksum that this program adds, which would hide all other damage.
std::string without_checksum(std::string bytes);

}  // namespace masquerade::fuzz
