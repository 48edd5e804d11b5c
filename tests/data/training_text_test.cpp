// SPDX-License-Identifier: MIT
// Tests which lines are held out: the choice depends on the text of a line, not on its place in the file.
#include "data/training_text.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "data/corpus.h"
#include "data/grammar.h"
#include "engine/base/error.h"
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

TEST_CASE("training text: of the corpus here each kind reads its part, and its pairs where no translations are") {
    const TemporaryFolder folder;
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path);
    const auto part = [](const char* kind, const std::string& line) {
        Splits splits;
        splits.lines[0] = splits.lines[1] = splits.lines[2] = {line};
        return masquerade::CorpusPart{kind, kind, splits};
    };
    std::vector<CorpusPart> parts = {part("sentences", "a"), part("pairs", "b\tc"), part("translations", "d\te")};
    const auto read = [&](TextKind kind) {
        const TrainingText t = find_training_text("", "", kind);
        CHECK(t.train == t.held_out);
        return t.train[0] + (t.train_targets.empty() ? "" : " " + t.train_targets[0]);
    };
    write_corpus("corpus", "", "", "", parts);
    CHECK(read(TextKind::sentences) == "a");
    CHECK(read(TextKind::any) == "b c");
    CHECK(read(TextKind::pairs) == "b c");
    CHECK(read(TextKind::translations) == "d e");
    parts.pop_back();
    write_corpus("corpus", "", "", "", parts);
    CHECK(read(TextKind::translations) == "b c");
    parts.pop_back();
    write_corpus("corpus", "", "", "", parts);
    CHECK(read(TextKind::any) == "a");
    CHECK_THROWS_AS(read(TextKind::translations), BadInput);
    std::filesystem::current_path(before);
}
