// SPDX-License-Identifier: MIT
// Examples with an answer, made on the fly or read from files, and the trivial baselines that a model must beat.
#pragma once
#include <cstdint>
#include <functional>
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
    std::string task = "listops_mini";  // a name of task_kinds(), or a folder with a folder of text files for each class
    int pairs = 8, length = 64, vocabulary = 64;  // of recall, copy and induction
    int dashes = 14, levels = 16;                 // of pathfinder
    int max_length = 1024;                        // of files, in bytes
};

// Ids: the five special tokens stand first in the vocabulary of every task.
constexpr int cls_id = 2, sep_id = 3, first_word = 5;

// A baseline: the answer that is most frequent, in training, among examples with the same clue.
struct Clue {
    const char *name, *what;
    int (*of)(const Solved&);
};

// A task whose examples are made: a row of the table.
struct TaskKind {
    const char *name, *what;
    const char* mask;  // in words
    bool scattered;    // the rows that are asked lie anywhere
    std::vector<std::string> (*words)(const TaskOptions&);
    int (*longest)(const TaskOptions&);  // rows of an example at most
    Solved (*make)(const TaskOptions&, Sequence& random);
    std::vector<Clue> clues;  // beside "majority", which has none
};
const std::vector<TaskKind>& task_kinds();

struct Baseline {
    std::string name, what;
    double right;  // share of the questions
};

class Examples {
  public:
    virtual ~Examples() = default;
    // The example of this number. Held-out examples are the same for every seed. Training never meets a held-out example.
    virtual Solved example(std::uint64_t number, bool held_out) const = 0;
    virtual std::uint64_t held_out() const { return UINT64_MAX; }  // how many there are
    virtual std::uint64_t hash() const { return 0; }               // of files: their names and sizes
    // The accuracies of the baselines on these examples.
    virtual std::vector<Baseline> baselines(const std::vector<Solved>& asked) const = 0;

    std::string name, mask;
    bool scattered = false;
    int longest = 0;
    std::vector<std::string> vocabulary;  // special tokens first
};

// BadUsage: no such task, or options that make no example. BadInput: a folder without classes.
std::unique_ptr<Examples> open_examples(const TaskOptions& options, std::uint64_t seed);

// The share of questions that the most frequent answer of `known` for the same clue gets right; no clue: of all.
double right_by_clue(const std::vector<Solved>& known, const std::vector<Solved>& asked, int (*clue)(const Solved&));

}  // namespace masquerade
