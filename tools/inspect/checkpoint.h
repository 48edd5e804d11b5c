// SPDX-License-Identifier: MIT
// ./inspect checkpoint.
#pragma once
#include <cstdint>
#include <string>

namespace masquerade {

class Backbone;
class Parameters;
class Vocabulary;

struct CheckpointSettings {
    std::string path;                  // a file, or a folder of ours or of Hugging Face's
    std::string save, tokens, logits;  // of Hugging Face's alone; empty: not asked for
};

// Lists what is in it, or does what is asked for. The seed is of a head that the checkpoint lacks.
void inspect_checkpoint(const CheckpointSettings& settings, std::uint64_t seed);

// A model in Hugging Face's form: all its files, or none.
void save_whole(const std::string& folder, const Backbone& backbone, const Parameters& parameters,
                const Vocabulary& vocabulary, bool lower);

// The part that knows Hugging Face's folders.
bool is_hugging_face(const std::string& path);
void inspect_hugging_face(const CheckpointSettings& settings, std::uint64_t seed);

}  // namespace masquerade
