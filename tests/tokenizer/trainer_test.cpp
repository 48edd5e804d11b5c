// SPDX-License-Identifier: MIT
#include "tokenizer/trainer.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "doctest/doctest.h"
#include "tokenizer/utf8.h"
#include "tokenizer/wordpiece.h"

using namespace masquerade;

namespace {

std::vector<std::string> tokens_of(const Vocabulary& v, int from = 5) {
    std::vector<std::string> tokens;
    for (int i = from; i < v.size(); i++) tokens.push_back(v.token(i));
    return tokens;
}

// A made-up language: words of random syllables, frequent ones much more so, with numbers and ideographs
// between.
std::vector<std::string> babble(int lines) {
    const char* syllables[] = {"ba", "na", "ti", "lo", "sek", "mur", "o", "ei",
                               "19", "20", "99", "中", "文",  "é",   ", "};
    std::vector<std::string> text;
    std::uint64_t state = 11;
    auto draw = [&](std::uint64_t below) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (state >> 33) % below;
    };
    for (int n = 0; n < lines; n++) {
        std::string line;
        for (int word = 0; word < 8; word++) {
            for (std::uint64_t i = 1 + draw(4); i > 0; i--) line += syllables[draw(1 + draw(15))];
            line += ' ';
        }
        text.push_back(line);
    }
    return text;
}

// Byte-pair encoding as it is defined: count all pairs anew for each merge.
std::vector<std::string> naive_merges(const std::vector<std::string>& lines, std::vector<std::string> tokens,
                                      int size) {
    std::map<std::string, int> counts;
    for (const std::string& line : lines)
        for (Words w(line, {}); w.next();) counts[w.text()]++;
    std::vector<std::pair<std::vector<std::string>, int>> words;
    for (const auto& [text, count] : counts) {
        std::vector<std::string> cut;
        for (std::size_t i = 0; i < text.size();) {
            std::size_t length = std::size_t(decode_utf8(text, i).length);
            cut.push_back((i == 0 ? "" : "##") + text.substr(i, length));
            i += length;
        }
        words.push_back({cut, count});
    }
    while (int(tokens.size()) < size) {
        std::map<std::pair<std::string, std::string>, int> pairs;
        for (const auto& [cut, count] : words)
            for (std::size_t i = 0; i + 1 < cut.size(); i++) pairs[{cut[i], cut[i + 1]}] += count;
        auto best = std::max_element(pairs.begin(), pairs.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
        if (best == pairs.end() || best->second < 2) break;
        const auto& [left, right] = best->first;
        std::string merged = left + right.substr(2);
        if (std::find(tokens.begin(), tokens.end(), merged) == tokens.end()) tokens.push_back(merged);
        for (auto& word : words) {
            std::vector<std::string> cut;
            for (const std::string& token : word.first) {
                if (token == right && !cut.empty() && cut.back() == left)
                    cut.back() = merged;
                else
                    cut.push_back(token);
            }
            word.first = cut;
        }
    }
    return tokens;
}

}  // namespace

TEST_CASE("special tokens, then characters by frequency, then merges") {
    Vocabulary v = train_vocabulary(std::vector<std::string>{"aab aab", "aab中, 中z"}, 100);
    CHECK(v.token(0) == "[PAD]");
    CHECK(v.unk() == 1);
    CHECK(v.mask() == 4);
    CHECK(tokens_of(v) == std::vector<std::string>{"a", "##a", "b", "##b", "中", "##ab", "aab"});
    CHECK(tokens_of(train_vocabulary(std::vector<std::string>{"aab aab", "aab中, 中z"}, 8)) ==
          std::vector<std::string>{"a", "##a", "b"});
}

TEST_CASE("incremental merging equals counting anew") {
    std::vector<std::string> lines = babble(60);
    lines.push_back("aaaa aaaaa aaaaaa aaa aaaa aaaaa bababa ababab abab");
    for (int size : {40, 70, 120, 5000}) {
        Vocabulary v = train_vocabulary(lines, size);
        std::vector<std::string> start;
        for (const std::string& token : tokens_of(v, 0)) {
            std::string_view piece = token;
            if (continues(token)) piece.remove_prefix(2);
            if (start.size() < 5 || int(piece.size()) == decode_utf8(piece, 0).length) start.push_back(token);
        }
        CHECK(tokens_of(v, 0) == naive_merges(lines, start, size));
    }
}

TEST_CASE("a vocabulary depends on the lines and not on their order") {
    std::vector<std::string> lines = babble(300);
    std::vector<std::string> a = tokens_of(train_vocabulary(lines, 400));
    std::reverse(lines.begin(), lines.end());
    CHECK(a == tokens_of(train_vocabulary(lines, 400)));
    CHECK(a.size() == 395);
}

TEST_CASE("frequent numbers become pieces, unless digits stay single") {
    std::vector<std::string> lines(5, "in 1999 and 1999,");
    CHECK(train_vocabulary(lines, 100).id("1999") > 0);
    Vocabulary single = train_vocabulary(lines, 100, {true, true});
    CHECK(single.id("1999") == -1);
    CHECK(single.id("19") == -1);
    CHECK(single.id("##9") == -1);
    CHECK(single.id("9") > 0);
}

TEST_CASE("all of the text can be encoded again") {
    std::vector<std::string> lines = babble(200);
    for (bool lower : {true, false}) {
        WordPiece tokenizer(train_vocabulary(lines, 200, {lower}), {lower});
        int unknown = 0;
        for (std::size_t i = 0; i < 200; i++)
            for (int id : tokenizer.encode(lines[i])) unknown += id == tokenizer.vocabulary().unk();
        CHECK(unknown == 0);
    }
    std::vector<std::string> accents{"Ünïcode ünïcode ünïcode"};
    CHECK(train_vocabulary(accents, 100).id("unicode") > 0);
    CHECK(train_vocabulary(accents, 100, {false}).id("ünïcode") > 0);
    CHECK(train_vocabulary(accents, 100, {false}).id("unicode") == -1);
}

TEST_CASE("rare characters are left out, and what holds them teaches nothing") {
    Vocabulary v = train_vocabulary(std::vector<std::string>{"abq abr abs"}, 100);
    CHECK(tokens_of(v) == std::vector<std::string>{"a", "##a", "b", "##b"});
    Vocabulary rare = train_vocabulary(std::vector<std::string>{"ab"}, 100, {true, false, 1});
    CHECK(tokens_of(rare) == std::vector<std::string>{"a", "##a", "b", "##b", "ab"});
}

TEST_CASE("what cannot be trained is said") {
    CHECK_THROWS_WITH_AS(train_vocabulary(std::vector<std::string>{"a"}, 5), doctest::Contains("6 or more"),
                         TokenizerError);
    CHECK_THROWS_WITH_AS(train_vocabulary(std::vector<std::string>{"", " "}, 50), doctest::Contains("empty"),
                         TokenizerError);
}
