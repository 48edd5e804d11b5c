// SPDX-License-Identifier: MIT
// Good files, which this program makes: a small BERT in one file and in shards, a run of three steps, and a tokenizer.
#pragma once
#include <string>

namespace masquerade::fuzz {

// Returns the folder of the files, which are made when they are first requested: bert/ (config.json, model.safetensors,
// vocab.txt), shards/ (the same model in two files with their index), run/, tokenizer.json and settings.txt. The folder
// is removed when the program ends normally.
const std::string& samples();

// Returns the file without the checksum that this project adds. With the checksum, readers would detect all damage at
// once, and never reach their other checks.
std::string without_checksum(std::string bytes);

}  // namespace masquerade::fuzz
