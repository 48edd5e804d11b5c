// SPDX-License-Identifier: MIT
// Which lines are held out: chosen by what they say, not by where they stand.
#include "data/training_text.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "data/grammar.h"
#include "tests/folder.h"

using namespace masquerade;

TEST_CASE("training text: the same lines are held out in any order, and equal lines never part") {
    const TemporaryFolder folder;
    std::vector<std::string> lines = grammar_questions(3, 2000);
    lines.insert(lines.end(), lines.begin(), lines.begin() + 300);
    auto held_out = [&](const char* name) {
        std::string all;
        for (const std::string& line : lines) all += line + "\n";
        const TrainingText t = find_training_text(folder.write(name, all), "");
        for (const std::string& line : t.held_out)
            CHECK(std::find(t.train.begin(), t.train.end(), line) == t.train.end());
        std::vector<std::string> sorted = t.held_out;
        std::sort(sorted.begin(), sorted.end());
        return sorted;
    };
    const std::vector<std::string> once = held_out("once");
    CHECK(once.size() > 20);
    CHECK(once.size() < 80);
    std::reverse(lines.begin(), lines.end());
    CHECK(held_out("reversed") == once);
    std::rotate(lines.begin(), lines.begin() + 17, lines.end());
    CHECK(held_out("rotated") == once);
}
