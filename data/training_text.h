// SPDX-License-Identifier: MIT
// The text of a run: what is trained on and what is held out, and where both came from, so that a later program finds
// the same lines again.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/tasks/pairs.h"

namespace masquerade {

struct TextOrigin {
    std::string name;                   // for people
    std::string file, held_out_file;    // absolute; empty: the built-in grammar, or lines held out of `file`
    std::uint64_t lines = 0, hash = 0;  // of `file`; without lines it is a folder of the run's task, and not read here
    bool pairs = false;                 // source<TAB>target a line: the targets are read, too
    std::uint64_t held_out_hash = 0;    // of `held_out_file`; 0: none, or a run that did not keep it
    PairOptions made = {};              // the task that made the pairs; then there is no file
};

struct TrainingText {
    TextOrigin origin;
    std::vector<std::string> train, held_out;
    std::vector<std::string> train_targets, held_out_targets;  // of pairs; else empty
    bool sources_alone = false;                                // the file holds pairs, and sentences were wanted
};

// translations: pairs; of the default corpus the translated ones, where there are some. any: pairs where there are
// some, else sentences. none: a task makes its own examples, and the text is empty.
enum class TextKind { sentences, pairs, translations, any, none };
inline bool only_pairs(TextKind wanted) { return wanted == TextKind::pairs || wanted == TextKind::translations; }

// The files a user names; without the first, the corpus of this folder; without that, the built-in grammar, with a
// note.
// If there is no held-out file, one line in fifty is held out, chosen by its own hash. If only sentences are wanted,
// pairs give their sources; if pairs are wanted, a file of sentences still gives sentences. If a task makes pairs, they
// are the text.
TrainingText find_training_text(const std::string& file, const std::string& held_out_file,
                                TextKind wanted = TextKind::sentences, const PairOptions& made = {});
// The same text again; BadInput where the file has changed.
TrainingText read_again(const TextOrigin& origin);

}  // namespace masquerade
