// SPDX-License-Identifier: MIT
// Labelled examples, generated when needed or read from files, and the accuracy of trivial baselines on these examples.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/random.h"

namespace masquerade {

// One example. At row rows[m], the model must predict the token answers[m]. `rows` is ascending.
struct Solved {
    std::vector<int> tokens;  // ids, [CLS] first
    std::vector<int> rows, answers;
};

struct TaskOptions {
    // a name of task_kinds(), or a folder that contains one folder of text files per class
    std::string task = "listops_mini";
    int pairs = 8, length = 64, vocabulary = 64;  // recall, copy and induction
    int dashes = 14, levels = 16;                 // pathfinder
    int max_length = 1024;                        // bytes that are read of each file, if the task is a folder
};

// The vocabulary of every task begins with the five special tokens.
constexpr int cls_id = 2, sep_id = 3, first_word = 5;

using WordList = std::vector<std::string>;
using WordsOf = WordList(const TaskOptions&);
using Make = Solved(const TaskOptions&, Sequence& random);
using ClueOf = int(const Solved&);

// A task that generates its examples; a row of task_kinds().
struct TaskKind {
    // A baseline knows only the clue of an example. Its answer is the most frequent answer of the training examples
    // with the same clue.
    struct Clue {
        const char *name, *what;
        ClueOf* of;
    };
    const char *name, *what;
    const char* mask;  // the mask specification
    bool scattered;    // whether answers are predicted at arbitrary rows, not at fixed ones
    WordsOf* words;
    int (*longest)(const TaskOptions&);  // upper bound of the number of rows of an example
    Make* make;
    std::vector<Clue> clues;  // in addition to the baseline "majority", which uses no clue
};
const std::vector<TaskKind>& task_kinds();
// The functions that the rows of task_kinds() use.
WordsOf listops_words, numbered_words, keys_and_values, grey_levels;
Make listops, listops_mini, recall, copy_of_words, induction, pathfinder;
ClueOf root_operator, root_and_digits, last_value, disc_distance;

struct Baseline {
    std::string name, what;
    double right;  // accuracy: fraction of the answers that are right
};

// Whether an example with these tokens is held out: one example in sixteen is, chosen by a hash of the tokens.
bool is_held_out(const std::vector<int>& tokens);

class Examples {
  public:
    virtual ~Examples() = default;
    // The example with this number. Held-out examples do not depend on the seed and are never used for training.
    virtual Solved example(std::uint64_t number, bool held_out) const = 0;
    virtual std::uint64_t held_out() const { return UINT64_MAX; }  // number of held-out examples
    virtual std::uint64_t hash() const { return 0; }               // for files: hash of their names and sizes
    virtual std::uint64_t contents() const { return 0; }           // for files: hash of their names, sizes and bytes
    // The accuracy of each baseline on these examples.
    virtual std::vector<Baseline> baselines(const std::vector<Solved>& asked) const = 0;

    std::string name, mask;
    bool scattered = false;
    int longest = 0;
    std::uint64_t files = 0, cut = 0;  // number of files; number of files longer than max_length
    WordList vocabulary;               // special tokens first
};

// Throws BadUsage if the task is unknown or the options allow no example, BadInput if a folder has no classes.
std::unique_ptr<Examples> open_examples(const TaskOptions& options, std::uint64_t seed);
std::unique_ptr<Examples> open_files(const TaskOptions& options, std::uint64_t seed);

// Returns the accuracy, on `asked`, of answering with the most frequent answer in `known` among examples with the same
// clue. If `clue` is null, all examples have the same clue.
double right_by_clue(const std::vector<Solved>& known, const std::vector<Solved>& asked, ClueOf* clue);

}  // namespace masquerade
