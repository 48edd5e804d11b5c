// SPDX-License-Identifier: MIT
// The text of a run: the training and held-out lines, and their origin, which lets a later program read the same lines
// again.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/tasks/pairs.h"

namespace masquerade {

struct TextOrigin {
    std::string name;                   // shown to the user
    std::string file, held_out_file;    // absolute; file "": the built-in grammar; held_out_file "": part of the text
    std::uint64_t lines = 0, hash = 0;  // of `file`; lines 0: `file` is the folder of a task, which is read elsewhere
    bool pairs = false;                 // whether targets are read too: source<TAB>target per line
    std::uint64_t held_out_hash = 0;    // of `held_out_file`; 0: there is no such file, or the hash was not stored
    PairOptions made = {};              // the task that generated the pairs, if there is one; `file` is then empty
};

struct TrainingText {
    TextOrigin origin;
    std::vector<std::string> train, held_out;
    std::vector<std::string> train_targets, held_out_targets;  // for pairs; otherwise empty
    bool sources_alone = false;  // whether `file` has targets that are ignored, because sentences were wanted
};

// The text that a model needs. translations: pairs, and in the default corpus its translations if it has any. any:
// pairs if there are any, otherwise sentences. none: no text, because a task provides the examples.
enum class TextKind { sentences, pairs, translations, any, none };
inline bool only_pairs(TextKind wanted) { return wanted == TextKind::pairs || wanted == TextKind::translations; }

// Finds the text of a run: the files that the user names; without them, the corpus in ./corpus; without a corpus, the
// built-in grammar, with a note. If no held-out file is named, one line in fifty is held out, chosen by its hash. If
// `wanted` is sentences, only the sources of pairs are used. If `wanted` is pairs, a file of sentences is still read as
// sentences. If `made` names a task, the text is the pairs that the task generates.
TrainingText find_training_text(const std::string& file, const std::string& held_out_file,
                                TextKind wanted = TextKind::sentences, const PairOptions& made = {});
// Reads the text of a run again. BadInput if a file has changed.
TrainingText read_again(const TextOrigin& origin);

}  // namespace masquerade
