// SPDX-License-Identifier: MIT
#include "tokenizer/wordpiece.h"

#include "doctest/doctest.h"

using namespace masquerade;

namespace {

const std::vector<std::string> tokens = {
    "[PAD]", "[UNK]", "[CLS]",        "[SEP]",    "[MASK]", "",       "##",  "###",    "[",   "]",
    "#",     "un",    "##want",       "##ed",     "want",   "##wa",   "run", "##ning", ",",   ".",
    "e",     "##e",   "cl",           "##s",      "mask",   "中",     "文",  "##文",   "3",   "14",
    "Hello", "hello", "\u1112\u1161", "##\u11AB", "##",     "\u2028", "σας", "x",      "##x", "ж",
    "##ж"};

std::string pieces(std::string_view line, WordPiece::Options options = {}) {
    WordPiece tokenizer{Vocabulary(tokens), options};
    std::string all;
    for (int id : tokenizer.encode(line)) all += (all.empty() ? "" : " ") + tokens[std::size_t(id)];
    return all;
}

std::string repeat(const std::string& s, int n) {
    std::string all;
    for (int i = 0; i < n; i++) all += s;
    return all;
}

}  // namespace

TEST_CASE("words are cut by the longest match from the left") {
    CHECK(pieces("") == "");
    CHECK(pieces(" \u2028 ") == "");
    CHECK(pieces("UNwanted, running.") == "un ##want ##ed , run ##ning .");
    CHECK(pieces("unwa") == "un ##wa");
    CHECK(pieces("unwan unzed hello") == "[UNK] [UNK] hello");  // one part unknown, the whole word unknown
    CHECK(pieces("中文3.14") == "中 文 3 . 14");
    CHECK(pieces("ΣΑΣ 한") == "σας \u1112\u1161 ##\u11AB");
    CHECK(pieces("Hello hello", {false, 200, false}) == "Hello hello");
    CHECK(pieces("HELLO", {false, 200, false}) == "[UNK]");
}

TEST_CASE("special tokens in the text are text") {
    CHECK(pieces("[CLS] [mask] [UNK]x") == "[ cl ##s ] [ mask ] [ [UNK] ] x");
    CHECK(pieces("# ## ###") == "# # # # # #");
}

TEST_CASE("a word longer than max_word is unknown") {
    for (int limit : {99, 100, 200}) {
        WordPiece::Options options{true, limit, false};
        CHECK(pieces(repeat("e", limit), options) == "e" + repeat(" ##e", limit - 1));
        CHECK(pieces(repeat("e\u0301", limit), options) == "e" + repeat(" ##e", limit - 1));
        CHECK(pieces(repeat("e", limit + 1), options) == "[UNK]");
        CHECK(pieces(repeat("É", limit + 1), options) == "[UNK]");
        CHECK(pieces(repeat("ж", limit), options) == "ж" + repeat(" ##ж", limit - 1));
        CHECK(pieces(repeat("文", limit + 1), options) == "文" + repeat(" 文", limit));
    }
    CHECK(pieces(std::string(1 << 20, 'e')) == "[UNK]");
    WordPiece unlimited{Vocabulary(tokens), {true, 1 << 30, false}};
    CHECK(unlimited.encode(std::string(1 << 20, 'e')).size() == 1 << 20);
}

TEST_CASE("pieces have the ids of encode and the bytes they come from") {
    WordPiece tokenizer{Vocabulary(tokens)};
    std::string line = "  Unwantéd, zz 中 e\u0301\u0301.\xFF 한";
    std::vector<int> ids;
    std::vector<std::string> sources;
    std::vector<int> words;
    int at = 0;
    for (const Piece& piece : tokenizer.encode_pieces(line)) {
        CHECK(piece.begin >= at);
        at = piece.begin;
        ids.push_back(piece.id);
        words.push_back(piece.word);
        sources.push_back(line.substr(std::size_t(piece.begin), std::size_t(piece.end - piece.begin)));
    }
    CHECK(ids == tokenizer.encode(line));
    CHECK(sources ==
          std::vector<std::string>{"Un", "want", "éd", ",", "zz", "中", "e\u0301\u0301", ".", "한", "한"});
    CHECK(words == std::vector<int>{0, 0, 0, 1, 2, 3, 4, 5, 6, 6});
}

TEST_CASE("single digits cut numbers") {
    CHECK(pieces("14 3") == "14 3");
    CHECK(pieces("33", {true, 200, true}) == "3 3");
    CHECK(pieces("x3e", {true, 200, true}) == "x 3 e");
}

TEST_CASE("a vocabulary without [UNK] is refused") {
    CHECK_THROWS_WITH_AS(WordPiece{Vocabulary({"a"})}, doctest::Contains("[UNK]"), TokenizerError);
    CHECK_THROWS_AS((WordPiece{Vocabulary(tokens), {true, 0, false}}), TokenizerError);
}

TEST_CASE("tokens of any length load") {
    std::vector<std::string> long_tokens = tokens;
    long_tokens.push_back(std::string(1 << 20, 'y'));
    WordPiece tokenizer{Vocabulary(long_tokens)};
    CHECK(tokenizer.encode("hello").size() == 1);
}
