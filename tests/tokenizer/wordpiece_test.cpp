// SPDX-License-Identifier: MIT
#include "tokenizer/wordpiece.h"

#include <algorithm>
#include <map>
#include <random>

#include "doctest/doctest.h"
#include "input/utf8.h"

using namespace masquerade;

namespace {

const std::vector<std::string> tokens = {
    "[PAD]",    "[UNK]",  "[CLS]",  "[SEP]", "[MASK]", "",     "##",     "###", "[",     "]",     "#",
    "un",       "##want", "##ed",   "want",  "##wa",   "run",  "##ning", ",",   ".",     "e",     "##e",
    "cl",       "##s",    "mask",   "中",    "文",     "##文", "3",      "14",  "Hello", "hello", "\u1112\u1161",
    "##\u11AB", "##",     "\u2028", "σας",   "x",      "##x",  "ж",      "##ж"};

using Options = WordPiece::Options;

template <class Change>
Options with(Change change) {
    Options options;
    change(options);
    return options;
}

std::string pieces(std::string_view line, WordPiece::Options options = {}) {
    WordPiece tokenizer{Vocabulary(tokens), options};
    std::string all;
    for (int id : tokenizer.encode(line)) all += (all.empty() ? "" : " ") + tokens[std::size_t(id)];
    return all;
}

const Options cased = with([](Options& o) { o.lower = false; });
const Options digits = with([](Options& o) { o.single_digits = true; });

// Returns "token@begin:end/word " for each piece.
std::string places(const WordPiece& tokenizer, std::string_view line) {
    std::string all;
    for (const Piece& p : tokenizer.encode_pieces(line))
        all += tokenizer.vocabulary().token(p.id) + "@" + std::to_string(p.begin) + ":" + std::to_string(p.end) + "/" +
               std::to_string(p.word) + " ";
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
    // If a part of a word is unknown, the whole word is unknown.
    CHECK(pieces("unwan unzed hello") == "[UNK] [UNK] hello");
    CHECK(pieces("中文3.14") == "中 文 3 . 14");
    CHECK(pieces("ΣΑΣ 한") == "σας \u1112\u1161 ##\u11AB");
    CHECK(pieces("Hello hello", cased) == "Hello hello");
    CHECK(pieces("HELLO", cased) == "[UNK]");
}

TEST_CASE("special tokens in the text are text") {
    CHECK(pieces("[CLS] [mask] [UNK]x") == "[ cl ##s ] [ mask ] [ [UNK] ] x");
    CHECK(pieces("# ## ###") == "# # # # # #");
}

TEST_CASE("a word longer than max_word is unknown") {
    for (int limit : {99, 100, 200}) {
        Options options = with([&](Options& o) { o.max_word = limit; });
        CHECK(pieces(repeat("e", limit), options) == "e" + repeat(" ##e", limit - 1));
        CHECK(pieces(repeat("e\u0301", limit), options) == "e" + repeat(" ##e", limit - 1));
        CHECK(pieces(repeat("e", limit + 1), options) == "[UNK]");
        CHECK(pieces(repeat("É", limit + 1), options) == "[UNK]");
        CHECK(pieces(repeat("ж", limit), options) == "ж" + repeat(" ##ж", limit - 1));
        CHECK(pieces(repeat("文", limit + 1), options) == "文" + repeat(" 文", limit));
    }
    CHECK(pieces(std::string(1 << 20, 'e')) == "[UNK]");
    WordPiece unlimited{Vocabulary(tokens), with([](Options& o) { o.max_word = 1 << 30; })};
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
    CHECK(sources == std::vector<std::string>{"Un", "want", "éd", ",", "zz", "中", "e\u0301\u0301", ".", "한", "한"});
    CHECK(words == std::vector<int>{0, 0, 0, 1, 2, 3, 4, 5, 6, 6});
}

TEST_CASE("single digits cut numbers") {
    CHECK(pieces("14 3") == "14 3");
    CHECK(pieces("33", digits) == "3 3");
    CHECK(pieces("x3e", digits) == "x 3 e");
}

TEST_CASE("a vocabulary without [UNK] is refused") {
    CHECK_THROWS_WITH_AS(WordPiece{Vocabulary({"a"})}, doctest::Contains("[UNK]"), TokenizerError);
    CHECK_THROWS_AS((WordPiece{Vocabulary(tokens), with([](Options& o) { o.max_word = 0; })}), TokenizerError);
}

TEST_CASE("tokens of any length load") {
    std::vector<std::string> long_tokens = tokens;
    long_tokens.push_back(std::string(1 << 20, 'y'));
    WordPiece tokenizer{Vocabulary(long_tokens)};
    CHECK(tokenizer.encode("hello").size() == 1);
}

TEST_CASE("characters that match nothing may be unknown by themselves") {
    Options options = with([](Options& o) { o.unknown = Unknown::character; });
    CHECK(pieces("unwan zeé", options) == "un ##wa [UNK] [UNK] ##e ##e");
    CHECK(pieces("qжq жж中q", options) == "[UNK] ##ж [UNK] ж ##ж 中 [UNK]");
    CHECK(pieces(repeat("e", 201), options) == "[UNK]");
}

namespace {

// Encodes by the definition: splits the line into words, and finds the longest piece by trying every length.
std::vector<int> by_definition(const WordPiece& tokenizer, std::string_view line) {
    std::map<std::string, int> ids;
    for (int id = 0; id < tokenizer.vocabulary().size(); id++) ids[tokenizer.vocabulary().token(id)] = id;
    std::vector<int> all;
    for (Words word(line, tokenizer.characters()); word.next();) {
        std::vector<int> cut;
        std::string rest = word.text();
        bool known = word.length() <= tokenizer.options().max_word;
        while (known && !rest.empty()) {
            std::size_t length = rest.size();
            while (length > 0 && ids.count((cut.empty() ? "" : "##") + rest.substr(0, length)) == 0) length--;
            known = length > 0;
            if (known) cut.push_back(ids[(cut.empty() ? "" : "##") + rest.substr(0, length)]);
            rest.erase(0, length);
        }
        if (!known) cut = {tokenizer.vocabulary().unk()};
        all.insert(all.end(), cut.begin(), cut.end());
    }
    return all;
}

}  // namespace

TEST_CASE("simple words are cut as all words are, remembered or not") {
    std::vector<std::string> vocabulary = tokens;
    for (char c : std::string("abdopty0459")) {
        vocabulary.push_back({c});
        vocabulary.push_back(std::string("##") + c);
    }
    for (const char* more : {"aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaa", "##aaaaaaaa", "A", "##B", "'", "?", "##12"})
        vocabulary.push_back(more);
    const std::u32string alphabet =
        U"aaaabdopty0459ABDO  ..,'?-\tz\0\x1B中文。\u0301\u00C9жΣσ\u00AD\u3000\u2028한\uFE0F";
    std::mt19937 random(7);
    for (int k = 0; k < 8; k++) {
        Options options = with([&](Options& o) {
            o.lower = k % 2 == 0;
            o.single_digits = k % 4 > 1;
            o.rules = k < 4 ? Rules::google : Rules::hugging_face;
            o.max_word = k == 5 ? 9 : 200;
        });
        WordPiece tokenizer{Vocabulary(vocabulary), options};
        Encoder encoder(tokenizer, 6), fresh(tokenizer, 1);
        for (int n = 0; n < 3000; n++) {
            std::string line;
            for (unsigned i = 0, length = random() % 40; i < length; i++) {
                char32_t c = alphabet[random() % alphabet.size()];
                unsigned times = random() % 30 == 0 ? random() % 40 : 1;
                for (unsigned j = 0; j < times; j++) append_utf8(line, c);
                if (random() % 60 == 0) line += char(random());
            }
            std::vector<int> expected = by_definition(tokenizer, line), ids, again;
            encoder.append(line, ids);
            encoder.append(line, again);
            CAPTURE(k);
            CAPTURE(line);
            CHECK(ids == expected);
            CHECK(again == expected);
            std::vector<Piece> pieces;
            fresh.append(line, pieces);
            again.clear();
            for (const Piece& piece : pieces) again.push_back(piece.id);
            CHECK(again == expected);
        }
    }
}

TEST_CASE("pieces show where they come from, replaced characters too") {
    Options options = with([](Options& o) { o.replace = {{U'\u2026', "..."}, {U'\u00D7', "x"}}; });
    WordPiece tokenizer{Vocabulary(tokens), options};
    CHECK(places(tokenizer, "x\u00D7 hello\u2026") ==  // bytes: x 0, times 1-3, hello 4-9
          "x@0:1/0 ##x@1:3/0 hello@4:9/1 .@9:12/2 .@9:12/3 .@9:12/4 ");
}

TEST_CASE("pieces behind an added token have their places in the line") {
    AddedToken added{"<m>", 4};
    added.special = false;
    const WordPiece tokenizer{Vocabulary(tokens), {}, {added}};
    CHECK(places(tokenizer, "x <m> unwanted,") ==
          "x@0:1/0 [MASK]@2:5/1 un@6:8/2 ##want@8:12/2 ##ed@12:14/2 ,@14:15/3 ");
}

TEST_CASE("no word is cut into an added token that is not the model's own") {
    for (bool beyond : {false, true}) {
        AddedToken first{"hello", Vocabulary(tokens).id("hello")}, later{"##want", Vocabulary(tokens).id("##want")};
        first.beyond = later.beyond = beyond;
        const WordPiece tokenizer{Vocabulary(tokens), {}, {first, later}};
        CHECK((places(tokenizer, "hello") == "[UNK]@0:5/0 ") == beyond);
        CHECK((places(tokenizer, "unwanted") == "[UNK]@0:8/0 ") == beyond);
    }
}

TEST_CASE("tokens that are not UTF-8 match no part of a character") {
    for (Unknown unknown : {Unknown::word, Unknown::character}) {
        Options options = with([&](Options& o) { o.lower = false, o.unknown = unknown; });
        WordPiece tokenizer{Vocabulary({"[PAD]", "[UNK]", "\xC3", "##\xA9", "b"}), options};
        CHECK(tokenizer.encode("é b") == std::vector<int>{1, 4});
        std::vector<Piece> pieces = tokenizer.encode_pieces("é b");
        REQUIRE(pieces.size() == 2);
        CHECK(pieces[0].end == 2);
    }
}

TEST_CASE("any cache will do") {
    WordPiece tokenizer{Vocabulary(tokens)};
    for (int remembered : {-1, 0, 1, 20}) {
        std::vector<int> ids;
        Encoder(tokenizer, remembered).append("hello run unwanted hello", ids);
        CHECK(ids == tokenizer.encode("hello run unwanted hello"));
    }
}

TEST_CASE("words that begin alike are remembered each by itself") {
    // The cache of encode() has two places for words, so two of these three words share a place.
    CHECK(pieces("unwantede unwanteds unwantedx") == "un ##want ##ed ##e un ##want ##ed ##s un ##want ##ed ##x");
}
