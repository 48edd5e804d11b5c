// SPDX-License-Identifier: MIT
// The text of a training run: the training and held-out lines, and their origin, from which a later program can read
// the same lines again.
#pragma once
#include "data/packed_text.h"
#include "data/tasks/pairs.h"

namespace masquerade {

struct TextOrigin {
    std::string name;  // name of the text in messages to the user
    // file: where the training data were read from:
    //   text                                    the absolute path of the file, or of the folder of a packed text
    //   examples from files (classify)          the absolute path of their folder
    //   vectors for a normalising flow          the absolute path of the .npy file or, for latents, of the run folder
    //   data that the program generates itself  ""
    // held_out_file: absolute path of the held-out text; "" if the held-out lines do not come from a separate file.
    std::string file, held_out_file;
    // Number of lines and hash of the training data. lines is 0 if the model is trained on examples or vectors, not on
    // text; read_again() then reads nothing. hash is 0 for the built-in grammar. If the training data are the latents
    // of a run, hash is the checksum of this run's weights. For a packed text, it is PackedText::hash().
    std::uint64_t lines = 0, hash = 0;
    bool pairs = false;               // whether targets are read, too (source<TAB>target per line)
    std::uint64_t held_out_hash = 0;  // hash of held_out_file; 0 if there is no such file or its hash was not stored
    PairOptions made = {};            // the task that generated the pairs, if a task did
    std::int64_t step = -1;  // the step of the run whose latents are the training data; -1: there is no such run
};

struct TrainingText {
    TextOrigin origin;
    Strings train, held_out;
    Strings train_targets, held_out_targets;  // for pairs; otherwise empty
    bool sources_alone = false;  // whether targets in origin.file were ignored, because only sentences were wanted
    std::shared_ptr<const PackedText> packed = nullptr;  // if there is one, `train` and `train_targets` are empty
    std::string warning = {};                            // of HeldOutLines, if it has chosen the held-out lines

    std::uint64_t lines() const { return packed ? packed->lines() : train.size(); }  // number of training lines
    bool pairs() const { return packed ? origin.pairs : !train_targets.empty(); }
    // Returns the training lines as encode_pairs() does. If `targets` is false, targets are left out.
    std::shared_ptr<const SentenceList> sentences(const WordPiece& tokenizer, int max_length, int max_target,
                                                  bool targets = true) const;
};

// The kind of text that a model needs:
//   sentences     lines without targets
//   pairs         source and target
//   translations  pairs; the corpus in ./corpus gives its translations if it has any, otherwise its other pairs
//   any           pairs if the text has targets, otherwise sentences
//   none          no text, because the model is trained on examples of a task or on vectors
enum class TextKind { sentences, pairs, translations, any, none };
inline bool only_pairs(TextKind wanted) { return wanted == TextKind::pairs || wanted == TextKind::translations; }

// Finds the text of a run. The training text is the first of these that exists:
//   the pairs that a task generates, if `made` names a task; no path may then be given
//   `file`, if a path is given: of a file, or of the folder of a packed text
//   the corpus in ./corpus
//   questions of the built-in grammar, with a note to the user
// The held-out lines are those of held_out_file, if a path is given. Otherwise, the corpus provides its dev file, and a
// task generates further pairs. A packed text has its own held-out lines. For any other text, HeldOutLines chooses them
// (held_out.h). If `wanted` is sentences, only the sources of pairs are
// used. If `wanted` is pairs, translations or any, a `file` without targets is allowed.
// If `wanted` is none and `made` names no task, the text has no lines, and no path may be given.
// Throws BadUsage if a path is given that may not be given. Throws BadInput if a file cannot be read, or if pairs are
// needed and there are none.
TrainingText find_training_text(const std::string& file, const std::string& held_out_file,
                                TextKind wanted = TextKind::sentences, const PairOptions& made = {});
// Reads the text of a run again. Throws BadInput if a file, or the task that generates the pairs, has changed.
TrainingText read_again(const TextOrigin& origin);
// The same, for a text that can be done without: in place of an error, logs a note that ends with `without`, and
// returns a text without lines.
TrainingText read_if_there(const TextOrigin& origin, const std::string& without);

}  // namespace masquerade
