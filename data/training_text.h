// SPDX-License-Identifier: MIT
// The text of a run: the training and held-out lines, and their origin, from which a later program can read these lines
// again.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/tasks/pairs.h"

namespace masquerade {

struct TextOrigin {
    std::string name;                   // shown to the user
    std::string file, held_out_file;    // absolute paths; "": the built-in grammar, or lines held out of `file`
    std::uint64_t lines = 0, hash = 0;  // of `file`; 0 lines: `file` is the folder of a task, read elsewhere
    bool pairs = false;                 // whether targets are read too: source<TAB>target per line
    std::uint64_t held_out_hash = 0;    // of `held_out_file`; 0: none, or the run did not store it
    PairOptions made = {};              // the task that generated the pairs; there is no file then
};

struct TrainingText {
    TextOrigin origin;
    std::vector<std::string> train, held_out;
    std::vector<std::string> train_targets, held_out_targets;  // for pairs; otherwise empty
    bool sources_alone = false;  // sentences were wanted, so the targets of a file of pairs are ignored
};

// translations: pairs; from the default corpus, its translations if it has any. any: pairs if available, else
// sentences. none: a task provides the examples, and the text is empty.
enum class TextKind { sentences, pairs, translations, any, none };
inline bool only_pairs(TextKind wanted) { return wanted == TextKind::pairs || wanted == TextKind::translations; }

// Finds the text of a run: the files that the user names; else the corpus in ./corpus; else the built-in grammar, with
// a note. If no held-out file is named, one line in fifty is held out, chosen by its own hash. If `wanted` is
// sentences, only the sources of pairs are used; if `wanted` is pairs, a file of sentences still gives sentences. If
// `made` names a task, the text is the pairs that the task generates.
TrainingText find_training_text(const std::string& file, const std::string& held_out_file,
                                TextKind wanted = TextKind::sentences, const PairOptions& made = {});
// Reads the text of a run again. BadInput if a file has changed.
TrainingText read_again(const TextOrigin& origin);

}  // namespace masquerade
