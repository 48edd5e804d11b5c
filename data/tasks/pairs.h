// SPDX-License-Identifier: MIT
// Tasks whose examples are pairs: a source, and the target that a model must generate. Words are w0, w1, ...
#pragma once
#include <utility>

#include "data/tasks/examples.h"

namespace masquerade {

struct PairOptions {
    std::string task = "none";   // a name of pair_tasks()
    int length = 16;             // copy, reverse, sort: largest number of words
    int words = 0;               // number of distinct words; 0: 32 or, for star_graph, the number of nodes
    std::string level = "easy";  // star_graph: a name of star_levels()
    std::uint64_t seed = 1;      // seed of the training pairs
    bool any() const { return task != "none"; }
};

using WordPair = std::pair<std::vector<int>, std::vector<int>>;  // source and target, as word numbers

// A row of pair_tasks(). `size` returns the number of distinct words, the largest lengths of source and target, and
// whether the token | is used.
struct PairTask {
    struct Size {
        int words, source, target;
        bool bars = false;
    };
    const char* name;
    Size (*size)(const PairOptions&);
    WordPair (*make)(const PairOptions&, Sequence& random);
};
const std::vector<PairTask>& pair_tasks();
const PairTask& find_pair_task(const PairOptions& o);  // BadUsage if there is no such task

// Star graphs: `degree` arms pass through one node, the centre. An arm has `shortest` to `longest` nodes including the
// centre, at least `ahead` of which come after the centre. `nodes` is the number of node names.
struct StarLevel {
    const char* name;
    int degree, shortest, longest, ahead, nodes;
};
const std::vector<StarLevel>& star_levels();

WordList pair_words(const PairOptions& o);  // vocabulary, beginning with the special tokens
// The pair with this number, as text. Held-out pairs do not depend on the seed; their sources never occur in training.
std::pair<std::string, std::string> made_pair(const PairOptions& o, std::uint64_t number, bool held_out);

}  // namespace masquerade
