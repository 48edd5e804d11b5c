// SPDX-License-Identifier: MIT
// Tasks whose examples are pairs: a source, and the target that a model is to write for it. Words are w0, w1 ...
#pragma once
#include <utility>

#include "data/tasks/examples.h"

namespace masquerade {

struct PairOptions {
    std::string task = "none";   // a name of pair_tasks()
    int length = 16;             // copy, reverse, sort: the longest
    int words = 0;               // different words; 0: 32, and of star_graph as many as a graph has nodes
    std::string level = "easy";  // star_graph: a name of star_levels()
    std::uint64_t seed = 1;      // of the pairs to train on
    bool any() const { return task != "none"; }
};

using WordPair = std::pair<std::vector<int>, std::vector<int>>;  // numbers of the words of source and target

// A row of the table. `size` says how many words there are, beside | where it has bars, and how many a source and a
// target have at most.
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
const PairTask& find_pair_task(const PairOptions& o);  // BadUsage

// Star graphs: `degree` arms meet in one node, the centre. An arm has shortest..longest nodes, the centre among them,
// and `ahead` of them at least lie behind the centre. Nodes have names from `nodes`.
struct StarLevel {
    const char* name;
    int degree, shortest, longest, ahead, nodes;
};
const std::vector<StarLevel>& star_levels();

WordList pair_words(const PairOptions& o);  // the vocabulary, special tokens first
// The pair of this number, as text. Held-out pairs are the same for every seed; their sources are never trained on.
std::pair<std::string, std::string> made_pair(const PairOptions& o, std::uint64_t number, bool held_out);

}  // namespace masquerade
