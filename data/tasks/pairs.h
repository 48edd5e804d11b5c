// SPDX-License-Identifier: MIT
// Tasks that generate pairs: a source, and the target that a model must generate from it. The words are w0, w1, ...; in
// sudoku, w0 is an empty cell.
#pragma once
#include <utility>

#include "data/tasks/examples.h"

namespace masquerade {

struct PairOptions {
    std::string task = "none";   // a name in pair_tasks(), or "none"
    int length = 16;             // for copy, reverse and sort: largest number of words in a source
    int words = 0;               // number of distinct words; 0: 32 or, for star_graph, StarLevel::nodes
    std::string level = "easy";  // for star_graph: a name in star_levels()
    std::uint64_t seed = 1;      // seed of the training pairs
    int grid = 4;                // for sudoku: number of rows, columns, boxes and digits; 4, 6 or 9
    int clues = 0;               // for sudoku: number of given digits, if one solution allows it; 0: 2/5 of the cells
    bool any() const { return task != "none"; }
};

using WordPair = std::pair<std::vector<int>, std::vector<int>>;  // source and target, as word numbers

// A row of pair_tasks(). `size` returns the number of distinct words, the largest number of tokens of a source and of a
// target, and whether the token | occurs (`bars`).
struct PairTask {
    struct Size {
        int words, source, target;
        bool bars = false;
    };
    const char *name, *what;  // what: the target
    Size (*size)(const PairOptions&);
    WordPair (*make)(const PairOptions&, Sequence& random);
};
const std::vector<PairTask>& pair_tasks();
// Throws BadUsage if there is no such task or an option is out of range.
const PairTask& find_pair_task(const PairOptions& o);

// The sizes of a star graph: `degree` paths, called arms, pass through one node, the centre. An arm has `shortest` to
// `longest` nodes including the centre, and at least `ahead` nodes after the centre. The names of the nodes are drawn
// from `nodes` words.
struct StarLevel {
    const char* name;
    int degree, shortest, longest, ahead, nodes;
};
const std::vector<StarLevel>& star_levels();

WordList pair_words(const PairOptions& o);  // the vocabulary; the special tokens come first
// Returns the pair with this number as text. Held-out pairs do not depend on the seed; their sources never occur in
// training pairs.
std::pair<std::string, std::string> made_pair(const PairOptions& o, std::uint64_t number, bool held_out);

}  // namespace masquerade
