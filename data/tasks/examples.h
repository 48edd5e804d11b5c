// SPDX-License-Identifier: MIT
// Examples with an answer, made on the fly or read from files, and the trivial baselines that a model must beat.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/random.h"

namespace masquerade {

// One example: question m is put to row rows[m], ascending, and wants the token answers[m].
struct Solved {
    std::vector<int> tokens;  // ids, [CLS] first
    std::vector<int> rows, answers;
};

struct TaskOptions {
    // a name of task_kinds(), or a folder with a folder of text files for each class
    std::string task = "listops_mini";
    int pairs = 8, length = 64, vocabulary = 64;  // of recall, copy and induction
    int dashes = 14, levels = 16;                 // of pathfinder
    int max_length = 1024;                        // of files, in bytes
};

// Ids: the five special tokens stand first in the vocabulary of every task.
constexpr int cls_id = 2, sep_id = 3, first_word = 5;

using WordList = std::vector<std::string>;
using WordsOf = WordList(const TaskOptions&);
using Make = Solved(const TaskOptions&, Sequence& random);
using ClueOf = int(const Solved&);

// A task whose examples are made: a row of the table.
struct TaskKind {
    // A baseline: the answer that is most frequent, in training, among examples with the same clue.
    struct Clue {
        const char *name, *what;
        ClueOf* of;
    };
    const char *name, *what;
    const char* mask;  // in words
    bool scattered;    // the rows that are asked lie anywhere
    WordsOf* words;
    int (*longest)(const TaskOptions&);  // rows of an example at most
    Make* make;
    std::vector<Clue> clues;  // beside "majority", which has none
};
const std::vector<TaskKind>& task_kinds();
// Its parts.
WordsOf listops_words, numbered_words, keys_and_values, grey_levels;
Make listops, listops_mini, recall, copy_of_words, induction, pathfinder;
ClueOf root_operator, root_and_digits, last_value, disc_distance;

struct Baseline {
    std::string name, what;
    double right;  // share of the questions
};

// Whether an example with these tokens is held out, whoever draws it: by their hash, one in sixteen.
bool is_held_out(const std::vector<int>& tokens);

class Examples {
  public:
    virtual ~Examples() = default;
    // The example of this number. Held-out examples are the same for every seed. Training never meets a held-out
    // example.
    virtual Solved example(std::uint64_t number, bool held_out) const = 0;
    virtual std::uint64_t held_out() const { return UINT64_MAX; }  // how many there are
    virtual std::uint64_t hash() const { return 0; }               // of files: their names and sizes
    virtual std::uint64_t contents() const { return 0; }           // ... and their bytes
    // The accuracies of the baselines on these examples.
    virtual std::vector<Baseline> baselines(const std::vector<Solved>& asked) const = 0;

    std::string name, mask;
    bool scattered = false;
    int longest = 0;
    std::uint64_t files = 0, cut = 0;  // that are read; those of them that lose their end
    WordList vocabulary;               // special tokens first
};

// BadUsage: no such task, or options that make no example. BadInput: a folder without classes.
std::unique_ptr<Examples> open_examples(const TaskOptions& options, std::uint64_t seed);
std::unique_ptr<Examples> open_files(const TaskOptions& options, std::uint64_t seed);

// The share of questions that the most frequent answer of `known` for the same clue gets right; no clue: of all.
double right_by_clue(const std::vector<Solved>& known, const std::vector<Solved>& asked, ClueOf* clue);

}  // namespace masquerade
