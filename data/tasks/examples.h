// SPDX-License-Identifier: MIT
// Labelled examples that a task generates or reads from files, and the accuracy of simple baselines on these examples.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/sentences.h"
#include "engine/base/random.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

// One example. At position rows[m] of `tokens`, the model must predict the token answers[m]. `rows` is ascending.
struct Solved {
    Tokens tokens;  // ids; the first is [CLS]
    std::vector<int> rows, answers;
};

struct TaskOptions {
    // A name in task_kinds(), or the path of a folder that contains folders of text files: one for each class or, if
    // `paired` is true, two.
    std::string task = "listops_mini";
    // For the tasks recall, copy and induction. pairs: number of key-value pairs, only for recall. length: for copy,
    // number of words to copy; for recall and induction, number of tokens after [CLS]. vocabulary: number of different
    // words.
    int pairs = 8, length = 64, vocabulary = 64;
    // For pathfinder. dashes: number of dashes of a long curve. levels: number of grey levels. side: width and height
    // of a picture, in pixels.
    int dashes = 14, levels = 16, side = 32;
    // If the task is a folder: whether an example is two texts, one from each of two folders, and the question is
    // whether their file names are equal. false: an example is one text, and the question is its folder.
    bool paired = false;
    // If the task is a folder: `tokens` says how each file is read, and max_length is the largest number of tokens.
    // With "bytes", each byte is a token, and [CLS] is not counted. With "words", a vocabulary cuts the text into
    // tokens, and [CLS] and [SEP] are counted. If `paired` is true, max_length is the limit of each of the two texts,
    // and [CLS] and [SEP] are never counted.
    int max_length = 1024;
    std::string tokens = "bytes";
    bool reads_words() const { return tokens == "words"; }
};

// The vocabulary begins with the five special tokens; the other tokens have ids from first_word on. However, if
// TaskOptions::tokens is "words", all ids come from the tokenizer's vocabulary.
constexpr int cls_id = 2, sep_id = 3, first_word = 5;

using WordList = Strings;
using WordsOf = WordList(const TaskOptions&);
using Make = Solved(const TaskOptions&, Sequence& random);
using ClueOf = int(const Solved&);

// A row of task_kinds(): a task that generates its examples.
struct TaskKind {
    // A function that computes a number, the clue, from an example. A baseline sees only the clue. It answers with
    // the most frequent answer of the training examples that have the same clue.
    struct Clue {
        const char *name, *what;
        ClueOf* of;
    };
    const char *name, *what;
    const char* mask;  // the attention mask, such as "A causal" (models/masks/words.h)
    bool scattered;    // true if the positions of the answers differ from example to example
    WordsOf* words;
    int (*longest)(const TaskOptions&);  // upper bound of the number of tokens of an example
    Make* make;
    std::vector<Clue> clues;  // each clue gives a baseline; there is also "majority", a baseline without a clue
};
const std::vector<TaskKind>& task_kinds();
// Appends the words whose names are this prefix and 0, 1, ...
void add_numbered(WordList& words, const char* prefix, int count);
// The functions in the rows of task_kinds().
WordsOf listops_words, numbered_words, keys_and_values, grey_levels;
Make listops, listops_mini, recall, copy_of_words, induction, pathfinder;
ClueOf root_operator, root_and_digits, last_value, disc_distance;

struct Baseline {
    std::string name, what;
    double right;  // accuracy: fraction of answers that are right
};

// Returns the random numbers with which an example (or pair) is made. If it is a held-out one, they depend only on its
// number and on `kind`, not on the seed. `kind` is "examples" or "pairs".
inline Sequence random_of(std::uint64_t seed, const std::string& kind, std::uint64_t number, bool held_out) {
    return {held_out ? 0 : seed, kind + (held_out ? ".held_out" : ".train"), std::uint32_t(number),
            std::uint32_t(number >> 32)};
}

// Returns true if a generated example with these tokens is held out. For a generated pair, `tokens` are the tokens of
// the source. A hash of the tokens chooses one example in sixteen.
bool is_held_out(const Tokens& tokens);

class Examples {
  public:
    virtual ~Examples() = default;
    // Returns the example with this number. Held-out examples do not depend on the seed, and training never uses them.
    virtual Solved example(std::uint64_t number, bool held_out) const = 0;
    virtual std::uint64_t held_out() const { return UINT64_MAX; }  // number of held-out examples; UINT64_MAX: no limit
    // If the task reads files, hash() is a hash of the names and sizes of the files, and contents() is a hash of their
    // names, sizes and bytes. For other tasks, both are 0.
    virtual std::uint64_t hash() const { return 0; }
    virtual std::uint64_t contents() const { return 0; }
    // Returns the tokens of `text` as if it were the contents of a file. Returns an empty list if the task reads no
    // files, or if an example is two of them.
    virtual Tokens tokens_of(const std::string& /*text*/) const { return {}; }
    // Returns the accuracy of each baseline on the examples `asked`.
    virtual std::vector<Baseline> baselines(const std::vector<Solved>& asked) const = 0;

    std::string name, mask;
    bool scattered = false;
    int longest = 0;
    WordList vocabulary;  // the tokens in the order of their ids
    // If the task reads files: counts() counts files as lines, and their words if they are read as words.
    // description() says how many files there are to train on, and how many are held out; for each class, if an example
    // is one file. For other tasks, the counts are 0, and the description is empty.
    virtual ReadCounts counts() const { return {}; }
    virtual std::string description() const { return ""; }
};

// Opens a task of task_kinds(), or a folder of text files (open_files()). `reader` is only used if the files of a
// folder are read as words (options.reads_words()): it is the tokenizer for these files. The reader must outlive the
// examples, and its vocabulary must contain a token "=NAME" for each class NAME. If files are read as words and
// `reader` is null, `vocabulary` contains only the tokens of the classes, and example(), baselines() and counts() must
// not be called.
// Throws BadUsage if the task is unknown, if options.reads_words() is true for a task of task_kinds(), or if a task of
// task_kinds() has no example with these options. Throws BadInput if a folder has fewer than two classes, an empty
// class, a class with a line end in its name, or no training or held-out files, or if the reader's vocabulary lacks a
// class.
std::unique_ptr<Examples> open_examples(const TaskOptions& options, std::uint64_t seed,
                                        const WordPiece* reader = nullptr);
// Opens a folder. With TaskOptions::paired, if files are read as words, the vocabulary of the reader must contain the
// answers "=other" and "=same". Throws BadInput, too, if there are not exactly two folders, or if fewer than two of the
// file names that exist in both folders are for training, or fewer than two are held out.
std::unique_ptr<Examples> open_files(const TaskOptions& options, std::uint64_t seed, const WordPiece* reader);

// Returns the share of the answers of `asked` that a baseline gives correctly. The baseline answers each example with
// the most frequent answer among the examples of `known` with the same clue, a number that `clue` computes from an
// example (TaskKind::Clue). If no example of `known` has this clue, the answer counts as wrong. If `clue` is null, the
// baseline always gives the most frequent answer of `known`.
double right_by_clue(const std::vector<Solved>& known, const std::vector<Solved>& asked, ClueOf* clue);

}  // namespace masquerade
