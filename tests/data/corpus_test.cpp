// SPDX-License-Identifier: MIT
#include "data/corpus.h"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "data/text.h"
#include "engine/base/error.h"
#include "engine/base/random.h"
#include "tests/folder.h"

namespace masquerade {
namespace {

// Returns the first of the groups "p0", "p1" ... (or with another stem) that belongs to this split.
std::string group_in(int split, const std::string& stem = "p") {
    for (int i = 0;; i++)
        if (split_of(stem + std::to_string(i)) == split) return stem + std::to_string(i);
}

std::vector<Entry> many_entries() {
    std::vector<Entry> entries;
    for (int i = 0; i < 2000; i++)
        for (int line = 0; line < 3; line++)
            entries.push_back({"group" + std::to_string(i), text("line ", i * (line + 1) % 1700), ""});
    return entries;
}

}  // namespace

TEST_CASE("corpus: about two groups in a hundred are held out for dev, and two for test") {
    int count[3] = {};
    for (int i = 0; i < 20000; i++) count[split_of("lib" + std::to_string(i))]++;
    for (int split : {1, 2}) {
        CHECK(count[split] > 300);
        CHECK(count[split] < 500);
    }
    CHECK(split_of("bash") == split_of("bash"));
}

TEST_CASE("corpus: a text stays in the first split that has it, whatever its case") {
    std::string train = group_in(0), dev = group_in(1), test = group_in(2);
    Splits splits = make_splits({{train, "Shared by all", ""},
                                 {dev, "shared BY all", ""},
                                 {test, "Shared by all", ""},
                                 {dev, "of dev", ""},
                                 {test, "Of dev", ""},
                                 {test, "of test", ""},
                                 {train, "twice", ""},
                                 {train, "twice", ""},
                                 {train, "Twice", ""}});
    std::vector<std::string> of_train = splits.lines[0];
    std::sort(of_train.begin(), of_train.end());
    CHECK(of_train == std::vector<std::string>{"Shared by all", "Twice"});
    CHECK(splits.lines[1] == std::vector<std::string>{"of dev"});
    CHECK(splits.lines[2] == std::vector<std::string>{"of test"});
}

TEST_CASE("corpus: neither side of a held-out pair occurs in train") {
    std::string train = group_in(0), dev = group_in(1);
    Splits splits = make_splits({{train, "long text", "title"},
                                 {train, "other text", "title"},
                                 {dev, "long text", "new title"},
                                 {dev, "new text", "Title"},
                                 {dev, "new text", "new title"}});
    CHECK(splits.lines[0].size() == 2);
    CHECK(splits.lines[1] == std::vector<std::string>{"new text\tnew title"});
}

TEST_CASE("corpus: splits depend on neither the order nor the repetition of entries") {
    std::vector<Entry> entries = many_entries();
    Splits splits = make_splits(entries);
    std::reverse(entries.begin(), entries.end());
    entries.insert(entries.end(), entries.begin(), entries.begin() + 500);
    Splits again = make_splits(entries);
    std::set<std::string> seen;
    std::size_t total = 0;
    for (int split = 0; split < 3; split++) {
        CHECK(splits.lines[split] == again.lines[split]);
        seen.insert(splits.lines[split].begin(), splits.lines[split].end());
        total += splits.lines[split].size();
    }
    CHECK(total > 1500);
    CHECK(seen.size() == total);
    CHECK_FALSE(std::is_sorted(splits.lines[0].begin(), splits.lines[0].end()));
}

TEST_CASE("corpus: a folder is written and read back") {
    TemporaryFolder folder;
    std::string path = folder.path + "/a/b";
    Splits splits;
    splits.lines[0] = {"one two", "three"};
    splits.lines[1] = {"four"};
    Splits pairs;
    pairs.lines[0] = {"a b\tc"};
    CHECK_THROWS_AS(read_corpus(path), BadInput);
    const std::string table =
        write_corpus(path, "name", "2001-02-03", "by hand",
                     {{"words", "sentences", splits}, {"both", "pairs", pairs}, {"other", "translations", pairs}});
    const Corpus read = read_corpus(path);
    CHECK(read.name == "name");
    CHECK(read.date == "2001-02-03");
    const auto source = nlohmann::json::parse(read_bytes(path + "/SOURCE.json"));
    CHECK(source["how"] == "by hand");
    CHECK(source["files"].size() == 9);
    const nlohmann::json words = source["files"]["words.train.txt"];
    CHECK(words["lines"] == 2);
    CHECK(words["words"] == 3);
    CHECK(words["bytes"] == 14);
    CHECK(words["hash"] == fmt::format("{:016x}", hash_of("one two\nthree\n")));
    CHECK(source["files"]["both.train.tsv"]["words"] == 3);
    CHECK(read_bytes(read.sentences[0]) == "one two\nthree\n");
    CHECK(read_bytes(read.sentences[1]) == "four\n");
    CHECK(read_bytes(read.pairs[0]) == "a b\tc\n");
    CHECK(read.pairs[0] == path + "/both.train.tsv");
    CHECK(read.translations[0] == path + "/other.train.tsv");
    CHECK(table.find("words.train.txt ") < table.find("both.train.tsv "));
    folder.write("a/b/SOURCE.json", "{\"name\": \"x\"}");
    CHECK_THROWS_AS(read_corpus(path), BadInput);
    CHECK_THROWS_AS(write_corpus(folder.write("file", "") + "/x", "", "", "", {}), BadInput);
}

}  // namespace masquerade
