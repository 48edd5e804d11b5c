// SPDX-License-Identifier: MIT
// Examples with answers, generated on the fly or read from files, and trivial baselines that a model must beat.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/random.h"

namespace masquerade {

// One example. Question m is asked at row rows[m] (ascending); its answer is the token answers[m].
struct Solved {
    std::vector<int> tokens;  // ids, [CLS] first
    std::vector<int> rows, answers;
};

struct TaskOptions {
    // a name of task_kinds(), or a folder that contains one folder of text files per class
    std::string task = "listops_mini";
    int pairs = 8, length = 64, vocabulary = 64;  // recall, copy and induction
    int dashes = 14, levels = 16;                 // pathfinder
    int max_length = 1024;                        // files, in bytes
};

// The vocabulary of every task begins with the five special tokens.
constexpr int cls_id = 2, sep_id = 3, first_word = 5;

using WordList = std::vector<std::string>;
using WordsOf = WordList(const TaskOptions&);
using Make = Solved(const TaskOptions&, Sequence& random);
using ClueOf = int(const Solved&);

// A task that generates its examples: one row of the table.
struct TaskKind {
    // A baseline: the most frequent training answer among examples with the same clue.
    struct Clue {
        const char *name, *what;
        ClueOf* of;
    };
    const char *name, *what;
    const char* mask;  // the mask specification
    bool scattered;    // whether the questions may be at any rows
    WordsOf* words;
    int (*longest)(const TaskOptions&);  // upper bound of the rows of an example
    Make* make;
    std::vector<Clue> clues;  // in addition to the baseline "majority", which uses no clue
};
const std::vector<TaskKind>& task_kinds();
// The functions of the table's rows.
WordsOf listops_words, numbered_words, keys_and_values, grey_levels;
Make listops, listops_mini, recall, copy_of_words, induction, pathfinder;
ClueOf root_operator, root_and_digits, last_value, disc_distance;

struct Baseline {
    std::string name, what;
    double right;  // accuracy over the questions
};

// Whether an example with these tokens is held out. Decided by their hash, for one example in sixteen.
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
    std::uint64_t files = 0, cut = 0;  // number of files; number of files that are cut
    WordList vocabulary;               // special tokens first
};

// BadUsage if the task is unknown or the options allow no example. BadInput if a folder has no classes.
std::unique_ptr<Examples> open_examples(const TaskOptions& options, std::uint64_t seed);
std::unique_ptr<Examples> open_files(const TaskOptions& options, std::uint64_t seed);

// The accuracy of answering with the most frequent answer in `known` for the same clue, or for all examples if `clue`
// is null.
double right_by_clue(const std::vector<Solved>& known, const std::vector<Solved>& asked, ClueOf* clue);

}  // namespace masquerade
