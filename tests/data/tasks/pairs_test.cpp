// SPDX-License-Identifier: MIT
// Tests the tasks of pairs: targets are right, every length occurs, no held-out pair is in the training set, and a
// resumed run finds its pairs again.
#include "data/tasks/pairs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "data/tasks/sudoku.h"
#include "data/training_text.h"
#include "engine/base/error.h"
#include "tests/train/files.h"
#include "models/runs/origin.h"

using namespace masquerade;

namespace {

std::vector<PairOptions> every_row() {
    std::vector<PairOptions> all;
    for (const PairTask& task : pair_tasks())
        for (const StarLevel& level : star_levels()) {
            PairOptions o;
            o.task = task.name;
            o.level = level.name;
            if (o.task == "star_graph" || o.level == "easy") all.push_back(o);
        }
    return all;
}

std::vector<int> numbers(const std::string& line) {
    std::istringstream words(line);
    std::vector<int> all;
    for (std::string word; words >> word;) {
        REQUIRE((word[0] == 'w' || word == "|"));
        all.push_back(word == "|" ? -1 : std::stoi(word.substr(1)));
    }
    return all;
}

PairOptions words_of(const std::string& task, int length, int words) {
    PairOptions o;
    o.task = task, o.length = length, o.words = words;
    return o;
}

}  // namespace

TEST_CASE(
    "pairs: of every row, pairs are fixed by seed and number, within their sizes, and none is held out and trained on") {
    CHECK(every_row().size() == 7);
    for (PairOptions o : every_row()) {
        INFO(o.task, " ", o.level);
        // So few possible pairs that training and held-out pairs would be equal if nothing kept them apart.
        if (o.task != "star_graph") o.length = 3, o.words = 12;
        PairOptions other = o;
        other.seed = 2;
        const PairTask::Size size = find_pair_task(o).size(o);
        CHECK(pair_words(o).size() == std::size_t(size.words + 5 + size.bars));
        CHECK(pair_words(o)[std::size_t(size.words + 4)] == text("w", size.words - 1));
        CHECK((pair_words(o).back() == "|") == size.bars);
        std::set<std::string> held_out, train;
        std::size_t longest[2] = {};
        int differ = 0;
        for (std::uint64_t i = 0; i < 400; i++) {
            const auto h = made_pair(o, i, true), t = made_pair(o, i, false);
            CHECK(h == made_pair(other, i, true));
            CHECK(t == made_pair(o, i, false));
            differ += t != made_pair(other, i, false);
            held_out.insert(h.first);
            train.insert({t.first, made_pair(other, i, false).first});
            for (const auto& [source, target] : {h, t}) {
                for (int word : numbers(source)) CHECK(word < size.words);
                if (!size.bars) CHECK(source.find('|') == source.npos);
                longest[0] = std::max(longest[0], numbers(source).size());
                longest[1] = std::max(longest[1], numbers(target).size());
            }
        }
        CHECK(differ > 300);
        CHECK(longest[0] <= std::size_t(size.source));
        CHECK(longest[1] == std::size_t(size.target));
        for (const std::string& source : held_out) CHECK(train.count(source) == 0);
    }
}

// Every row, column and box has each digit once. `height` and `width` are those of a box.
static bool is_solved(const std::vector<int>& cells, int height, int width) {
    const int side = height * width;
    for (int i = 0; i < side; i++) {
        std::set<int> row, column, box;
        for (int j = 0; j < side; j++) {
            row.insert(cells[std::size_t(i * side + j)]);
            column.insert(cells[std::size_t(j * side + i)]);
            box.insert(cells[std::size_t((i / height * height + j / width) * side + i % height * width + j % width)]);
        }
        for (const auto& group : {row, column, box})
            if (int(group.size()) < side || *group.begin() != 1 || *group.rbegin() != side) return false;
    }
    return true;
}

TEST_CASE("pairs: a sudoku has the digits of its solution, as many as asked, and no other solution") {
    // All grids of 4 x 4, by trying each digit in each cell.
    std::vector<std::vector<int>> grids;
    for (std::uint32_t rows = 0; rows < 24 * 24 * 24 * 24; rows++) {
        std::vector<int> grid;
        for (std::uint32_t left = rows, row = 0; row < 4; row++, left /= 24) {
            std::vector<int> digits = {1, 2, 3, 4};
            for (std::uint32_t i = 0; i < left % 24; i++) std::next_permutation(digits.begin(), digits.end());
            grid.insert(grid.end(), digits.begin(), digits.end());
        }
        if (is_solved(grid, 2, 2)) grids.push_back(grid);
    }
    CHECK(grids.size() == 288);
    CHECK(sudoku_solutions(4, std::vector<int>(16, 0), 1000) == 288);
    CHECK(sudoku_solutions(4, std::vector<int>(16, 0), 7) == 7);
    std::vector<int> wrong(16, 0);
    wrong[0] = wrong[5] = 3;  // in one box
    CHECK(sudoku_solutions(4, wrong, 2) == 0);

    for (const int side : {4, 6, 9})
        for (const int clues : {0, side * side / 2}) {
            PairOptions o = words_of("sudoku", 0, 0);
            o.grid = side, o.clues = clues;
            std::set<std::vector<int>> solutions;
            for (std::uint64_t i = 0; i < 40; i++) {
                const auto [source, target] = made_pair(o, i, false);
                const std::vector<int> puzzle = numbers(source), solution = numbers(target);
                CHECK(is_solved(solution, side == 9 ? 3 : 2, side == 4 ? 2 : 3));
                int given = 0;
                for (std::size_t cell = 0; cell < puzzle.size(); cell++) {
                    given += puzzle[cell] != 0;
                    if (puzzle[cell] != 0) CHECK(puzzle[cell] == solution[cell]);
                }
                CHECK(given >= (clues ? clues : side * side * 2 / 5));
                CHECK(given <= side * side / 2);
                CHECK(sudoku_solutions(side, puzzle, 2) == 1);
                if (side == 4)
                    CHECK(std::count_if(grids.begin(), grids.end(), [&](const std::vector<int>& grid) {
                              for (std::size_t cell = 0; cell < 16; cell++)
                                  if (puzzle[cell] != 0 && puzzle[cell] != grid[cell]) return false;
                              return true;
                          }) == 1);
                solutions.insert(solution);
            }
            CHECK(solutions.size() > 30);
        }
    PairOptions o = words_of("sudoku", 0, 0);
    o.grid = 5;
    CHECK_SAYS(message_of<BadUsage>([&] { pair_words(o); }), "sudoku needs a grid of 4, 6 or 9 and clues");
    o.grid = 4, o.clues = 16;
    CHECK_SAYS(message_of<BadUsage>([&] { pair_words(o); }), "found grid=4 clues=16");
}

TEST_CASE("pairs: copy, reverse and sort change what they say, and all lengths from 0 are alike") {
    for (const char* task : {"copy", "reverse", "sort"}) {
        std::map<std::size_t, int> lengths;
        int repeats = 0;
        for (std::uint64_t i = 0; i < 1800; i++) {
            const auto [source, target] = made_pair(words_of(task, 8, 16), i, false);
            std::vector<int> wanted = numbers(source);
            lengths[wanted.size()]++;
            std::set<int> different(wanted.begin(), wanted.end());
            repeats += different.size() < wanted.size();
            if (task == std::string("reverse")) std::reverse(wanted.begin(), wanted.end());
            if (task == std::string("sort")) std::sort(wanted.begin(), wanted.end());
            CHECK(numbers(target) == wanted);
        }
        CHECK(lengths.size() == 9);
        for (const auto& [length, count] : lengths) {
            CHECK(length <= 8);
            CHECK(count > 140);  // about 200 of each length are expected
            CHECK(count < 260);
        }
        CHECK(repeats > 500);
    }
    CHECK(made_pair(words_of("reverse", 12, 99), 5, false).second.size() > 2);
}

TEST_CASE("pairs: nodes of a small star graph are named from as many words as are asked for") {
    const PairOptions o = words_of("star_graph", 16, 56);
    CHECK(pair_words(o).size() == 5 + 56 + 1);
    std::set<int> names;
    for (std::uint64_t i = 0; i < 300; i++)
        for (int n : numbers(made_pair(o, i, false).second)) names.insert(n);
    CHECK(names.size() == 56);
    CHECK(*names.rbegin() == 55);
}

TEST_CASE("pairs: a star graph has its arms, and the target is the only way from start to goal") {
    for (const StarLevel& level : star_levels()) {
        INFO(std::string(level.name));
        PairOptions o = words_of("star_graph", 16, 0);
        o.level = level.name;
        std::set<std::size_t> lengths, places;
        int in_order = 0;
        for (std::uint64_t i = 0; i < 300; i++) {
            const auto pair = made_pair(o, i, false);
            std::vector<int> source = numbers(pair.first);
            const std::vector<int> path = numbers(pair.second);
            // There is a bar after each edge.
            for (std::size_t e = 2; e + 1 < source.size(); e += 3) CHECK(source[e] == -1);
            source.erase(std::remove(source.begin(), source.end(), -1), source.end());
            std::map<int, std::vector<int>> after;
            std::map<int, int> before;
            std::set<int> nodes(source.begin(), source.end());
            REQUIRE(source.size() % 2 == 0);
            const std::size_t edges = source.size() / 2 - 1;
            for (std::size_t e = 0; e < edges; e++) {
                after[source[2 * e]].push_back(source[2 * e + 1]);
                before[source[2 * e + 1]]++;
            }
            CHECK(nodes.size() == edges + 1);  // the graph is a tree
            CHECK(int(nodes.size()) <= level.nodes);
            CHECK(path.front() == source[source.size() - 2]);
            CHECK(path.back() == source.back());
            for (std::size_t n = 1; n < path.size(); n++) {
                const std::vector<int>& next = after[path[n - 1]];
                CHECK(std::count(next.begin(), next.end(), path[n]) == 1);
            }
            // All arms meet in the centre. The ends of the arms are the nodes with one edge, and there are as many of
            // them as edges at the centre.
            int centre = -1, ends = 0;
            for (int node : nodes) {
                const int touching = int(after[node].size()) + before[node];
                if (touching > 2) centre = node;
                ends += touching == 1;
            }
            if (level.degree > 2) REQUIRE(centre >= 0);
            CHECK(int(after[centre].size()) == level.degree);  // every arm continues behind the centre
            CHECK(ends == level.degree + before[centre]);
            const std::size_t place = std::size_t(std::find(path.begin(), path.end(), centre) - path.begin());
            CHECK(int(path.size() - place) > level.ahead);
            places.insert(place);
            lengths.insert(path.size());
            const auto first = std::search(source.begin(), source.end() - 2, path.begin(), path.begin() + 2);
            in_order += first == source.begin();
        }
        CHECK(int(*lengths.begin()) == level.shortest);
        CHECK(int(*lengths.rbegin()) == level.longest);
        CHECK(places.size() == std::size_t(level.longest - level.ahead));
        CHECK(in_order < 100);  // the edges are shuffled
    }
}

TEST_CASE("pairs: a run's record finds its pairs again, and refuses those of another task") {
    PairOptions o = words_of("sort", 5, 20);
    o.seed = 7;
    const TrainingText t = find_training_text("", "", TextKind::pairs, o);
    CHECK(t.train.size() == 50000);
    CHECK(t.train_targets.size() == 50000);
    CHECK(t.held_out.size() == 5000);
    CHECK(t.held_out_targets.size() == 5000);
    CHECK(std::count(t.train_targets.begin(), t.train_targets.end(), "") > 5000);
    const TextOrigin origin = origin_of(nlohmann::json({{"data", json_of(t.origin)}}).dump(), "run.json");
    const TrainingText again = read_again(origin);
    CHECK(again.train == t.train);
    CHECK(again.train_targets == t.train_targets);
    CHECK(again.held_out == t.held_out);
    CHECK(again.origin.pairs);
    TextOrigin changed = origin;
    changed.made.seed = 8;
    CHECK_SAYS(message_of<BadInput>([&] { read_again(changed); }), "task sort has changed since the run was started");
    changed.made.words = 1;
    CHECK_SAYS(message_of<BadUsage>([&] { read_again(changed); }),
               "needs a length of 0 to 4096 and 2 to 65536 words or 0");
    CHECK_SAYS(message_of<BadUsage>([&] { find_training_text("a file", "", TextKind::pairs, o); }),
               "generates its own examples");
    CHECK_SAYS(message_of<BadUsage>([&] { made_pair(words_of("copy", 1, 2), 0, true); }),
               "too few pairs to hold some out");
    CHECK_SAYS(message_of<BadUsage>([&] { pair_words(words_of("cpy", 1, 2)); }), "there is no task of pairs cpy");
    o = words_of("star_graph", 1, 2);
    CHECK_SAYS(message_of<BadUsage>([&] { pair_words(o); }), "graphs of up to 20 nodes, found 2 words to name them");
    o.level = "huge";
    CHECK_SAYS(message_of<BadUsage>([&] { pair_words(o); }), "there is no level of star_graph huge");
}
