// SPDX-License-Identifier: MIT
#include "data/tasks/pairs.h"

#include <algorithm>
#include <numeric>

#include "data/tasks/sudoku.h"
#include "engine/base/named.h"
#include "engine/base/shuffle.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {
namespace {

constexpr int bar = -1;  // stands for the token | in a list of words; the words themselves have the numbers 0, 1, ...

PairTask::Size size_of_words(const PairOptions& o) { return {o.words == 0 ? 32 : o.words, o.length, o.length}; }

// Returns a pair: a source of random words, and the target that `change` makes from the source. All lengths from 0 to
// o.length are equally likely.
template <void (*change)(std::vector<int>&)>
WordPair changed(const PairOptions& o, Sequence& random) {
    WordPair p;
    p.first.resize(random.below(o.length + 1));
    for (int& word : p.first) word = random.below(size_of_words(o).words);
    change(p.second = p.first);
    return p;
}
void same(std::vector<int>&) {}
void reversed(std::vector<int>& v) { std::reverse(v.begin(), v.end()); }
void sorted(std::vector<int>& v) { std::sort(v.begin(), v.end()); }

const StarLevel& level_of(const PairOptions& o) { return find_named(star_levels(), o.level, "level of star_graph"); }

PairTask::Size size_of_star(const PairOptions& o) {
    const StarLevel& s = level_of(o);
    if (o.words > 0 && o.words < s.nodes)
        throw BadUsage("level ", s.name, " of star_graph has graphs of up to ", s.nodes, " nodes, found ", o.words,
                       " words to name them");
    return {std::max(o.words, s.nodes), 3 * s.degree * (s.longest - 1) + 2, s.longest, true};
}

// Returns a random star graph (see StarLevel). The source lists all edges in random order, each as two nodes and a
// bar, then the first and the last node of one arm. The target lists all nodes of this arm. Each edge needs its bar:
// without bars, any two neighbouring words could be an edge.
WordPair star_graph(const PairOptions& o, Sequence& random) {
    const StarLevel& s = level_of(o);
    std::vector<int> names(size_of_star(o).words);
    std::iota(names.begin(), names.end(), 0);
    shuffle(names, random);
    const int centre = names.back();
    names.pop_back();
    std::vector<std::pair<int, int>> edges;
    WordPair p;
    for (int arm = 0; arm < s.degree; arm++) {
        std::vector<int> nodes(s.shortest + random.below(s.longest - s.shortest + 1), centre);
        const std::size_t place = random.below(nodes.size() - s.ahead);
        for (std::size_t i = 0; i < nodes.size(); i++) {
            if (i != place) nodes[i] = names.back(), names.pop_back();
            if (i > 0) edges.emplace_back(nodes[i - 1], nodes[i]);
        }
        if (arm == 0) p.second = nodes;
    }
    shuffle(edges, random);
    for (const auto& [from, to] : edges) p.first.insert(p.first.end(), {from, to, bar});
    p.first.insert(p.first.end(), {p.second.front(), p.second.back()});
    return p;
}

PairTask::Size size_of_sudoku(const PairOptions& o) {
    if ((o.grid != 4 && o.grid != 6 && o.grid != 9) || o.clues < 0 || o.clues >= o.grid * o.grid)
        throw BadUsage(
            text("sudoku needs a grid of 4, 6 or 9 and clues for 0 cells or more, but not for all of them, "
                 "found grid=",
                 o.grid, " clues=", o.clues));
    return {o.grid + 1, o.grid * o.grid, o.grid * o.grid};
}
// The source lists the cells of the puzzle, row after row, and the target those of its solution.
WordPair sudoku(const PairOptions& o, Sequence& random) {
    Sudoku made = random_sudoku(o.grid, o.clues == 0 ? o.grid * o.grid * 2 / 5 : o.clues, random);
    return {std::move(made.puzzle), std::move(made.solution)};
}

std::string as_text(const std::vector<int>& words) {
    std::string line;
    for (int word : words) line += (line.empty() ? "" : " ") + (word == bar ? "|" : text("w", word));
    return line;
}

}  // namespace

const std::vector<PairTask>& pair_tasks() {
    static const std::vector<PairTask> all = {
        {"copy", "the words of the source", size_of_words, changed<same>},
        {"reverse", "its words from the last to the first", size_of_words, changed<reversed>},
        {"sort", "its words, sorted", size_of_words, changed<sorted>},
        {"star_graph", "a path in the graph of the source", size_of_star, star_graph},
        {"sudoku", "the solution of the puzzle", size_of_sudoku, sudoku},
    };
    return all;
}

// The sizes are those of Patel et al. 2025, "Insertion Language Models". Bachmann and Nagarajan introduced the task in
// 2024.
const std::vector<StarLevel>& star_levels() {
    static const std::vector<StarLevel> all = {{"easy", 3, 5, 5, 4, 20},
                                               {"medium", 3, 3, 6, 2, 20},
                                               {"hard", 5, 6, 12, 5, 56}};
    return all;
}

const PairTask& find_pair_task(const PairOptions& o) {
    if (o.length < 0 || o.length > 4096 || o.words < 0 || o.words == 1 || o.words > 65536)
        throw BadUsage("task ", o.task,
                       " needs a length of 0 to 4096 and 2 to 65536 words or 0, its own number, found ", o.length, ", ",
                       o.words);
    return find_named(pair_tasks(), o.task, "task of pairs");
}

WordList pair_words(const PairOptions& o) {
    WordList all(special_tokens, special_tokens + first_word);
    const PairTask::Size size = find_pair_task(o).size(o);
    add_numbered(all, "w", size.words);
    if (size.bars) all.push_back("|");
    return all;
}

std::pair<std::string, std::string> made_pair(const PairOptions& o, std::uint64_t number, bool held_out) {
    const PairTask& task = find_pair_task(o);
    Sequence random = random_of(o.seed, "pairs", number, held_out);
    for (int tries = 0; tries < 2000; tries++) {
        const WordPair p = task.make(o, random);
        if (is_held_out(p.first) == held_out) return {as_text(p.first), as_text(p.second)};
    }
    throw BadUsage("task ", o.task, " has too few pairs to hold some out; choose a larger length or more words");
}

}  // namespace masquerade
