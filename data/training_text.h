// SPDX-License-Identifier: MIT
// The text of a run: what is trained on and what is held out, and where both came from, so that a later program finds
// the same lines again.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace masquerade {

struct TextOrigin {
    std::string name;                // for people
    std::string file, held_out_file; // absolute; empty: the built-in grammar, or lines held out of `file`
    std::uint64_t lines = 0, hash = 0;
};

struct TrainingText {
    TextOrigin origin;
    std::vector<std::string> train, held_out;
};

// The files a user names; without the first, the corpus of this folder; without that, the built-in grammar, with a note.
// Where there is no held-out file one line in fifty is held out, chosen by its own hash.
TrainingText find_training_text(const std::string& file, const std::string& held_out_file);
// The same text again; BadInput where the file has changed.
TrainingText read_again(const TextOrigin& origin);

}  // namespace masquerade
