// SPDX-License-Identifier: MIT
// Compares the normaliser with Python's Unicode functions (tests/tokenizer/reference.py computes the hashes). Examples
// by hand show what happens.
#include "tokenizer/normalise.h"

#include <cstdint>
#include <cstring>

#include "doctest/doctest.h"
#include "input/utf8.h"
#include "tokenizer/characters_table.h"

using namespace masquerade;

namespace {

std::string joined(std::string_view line, const Characters& characters) {
    std::string all;
    for (Words words(line, characters); words.next();) all += (all.empty() ? "" : " ") + words.text();
    return all;
}

template <class Change>
Characters with(Change change) {
    NormaliseOptions options;
    change(options);
    return Characters(options);
}

const Characters reference{NormaliseOptions()};
const Characters cased = with([](NormaliseOptions& o) { o.lower = false; });

std::string joined(std::string_view line) { return joined(line, reference); }

class Hash {
  public:
    void add(const std::string& text) {
        for (char c : text) value_ = (value_ ^ (unsigned char)c) * 0x100000001b3ull;
        value_ = (value_ ^ '\n') * 0x100000001b3ull;
    }
    std::uint64_t value() const { return value_; }

  private:
    std::uint64_t value_ = 0xcbf29ce484222325ull;
};

bool surrogate(char32_t c) { return c >= 0xD800 && c <= 0xDFFF; }

std::uint64_t hash_of_every_code_point(const Characters& options) {
    Hash hash;
    for (char32_t c = 0; c < 0x110000; c++) {
        if (surrogate(c)) continue;
        std::string text = "Ab";
        append_utf8(text, c);
        hash.add(joined(text + "?De", options));
    }
    return hash.value();
}

std::uint64_t hash_of_random_texts(const Characters& options) {
    const std::u32string common =
        U"aBz09 .,'\"-"
        U"\u03a3\u03c3\u03b1\u0391\u0301\u0323\u00ad\u200b\ufe0f\u302e\u1715\u309b\u0e31\u4e2d\u3000"
        U"\u2028\n\u0130\u00df\u1e9b\uac01\ud7a3\u2260\U0001d160\U0001d165\U00016ff0";
    Hash hash;
    std::uint64_t state = 1;
    for (int n = 0; n < 60000; n++) {
        std::string text;
        for (int i = 0; i < 24; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            std::uint64_t draw = state >> 33;
            char32_t c = char32_t(draw / 8 % 0x30000);
            append_utf8(text, draw % 8 == 0 && !surrogate(c) ? c : common[draw / 8 % common.size()]);
        }
        hash.add(joined(text, options));
    }
    return hash.value();
}

}  // namespace

TEST_CASE("words of every code point are Python's") {
    REQUIRE(std::strcmp(unicode::version, "14.0.0") == 0);
    CHECK(hash_of_every_code_point(reference) == 0x2b822042f5ee0c0a);
    CHECK(hash_of_every_code_point(cased) == 0x77f5b7726cf122fe);
}

TEST_CASE("words of random strings are Python's") {
    CHECK(hash_of_random_texts(reference) == 0x425ba8d3b3b077d0);
    CHECK(hash_of_random_texts(cased) == 0x7a4fc0ab69a584c7);
}

TEST_CASE("nothing, white space and dropped characters are no words") {
    using namespace std::string_view_literals;
    CHECK(joined("") == "");
    CHECK(joined(" \t\r\n \u00A0\u3000\u2028\u2003") == "");
    CHECK(joined("\0\uFFFD\uFEFF\u00AD\u200B\u200D\u200F\u180E"sv) == "");
    // Tab, LF and CR separate words. All other control characters are dropped, even if Unicode counts them as white
    // space.
    CHECK(joined("a\u0085b\vc\fd\x1Cz") == "abcdz");
    CHECK(joined("a\u2028b\u3000c\rd") == "a b c d");
    CHECK(joined("\u0301") == "");  // a mark with nothing to stand on
}

TEST_CASE("bytes that are not UTF-8 are dropped") {
    CHECK(joined("a\xFFy\x80") == "ay");
    CHECK(joined("a\xE4\xB8z") == "az");              // the last byte of a character is missing
    CHECK(joined("a\xC0\xAF\xED\xA0\x80z") == "az");  // overlong, surrogate
    CHECK(joined("a\xF4\x90\x80\x80\xF5z\xE4") == "az");
    CHECK(joined("\xE4\xB8\xE4\xB8\xAD") == "中");
}

TEST_CASE("punctuation and ideographs stand alone") {
    CHECK(joined("3.14, e-mail: C++ a_b [CLS] ##") == "3 . 14 , e - mail : c + + a _ b [ cls ] # #");
    CHECK(joined("中文abc123中文。") == "中 文 abc123 中 文 。");
    CHECK(joined("カナかなㄅ〇") == "カナかなㄅ〇");  // kana, bopomofo and the zero do not stand alone
    CHECK(joined("€5 5° 😀😀") == "€5 5° 😀😀");          // symbols are not punctuation
    CHECK(joined("x\U0002B820y\U0002B920z") == "x \U0002B820 y \U0002B920 z");
    CHECK(joined("x\U0002CEB0y") == "x\U0002CEB0y");             // extension F is newer than BERT's list
    CHECK(joined("a\u037Eb\u1FEFc\u2260d") == "a ; b ` c = d");  // their decompositions decide whether they stand alone
    CHECK(joined("a\u2260d", cased) == "a\u2260d");
}

TEST_CASE("lower case strips marks, cased leaves characters as they are") {
    CHECK(joined("Åström É e\u0301 Việt ﬁ ß Ａ") == "astrom e e viet ﬁ ß ａ");
    CHECK(joined("Åström É e\u0301 \uF900", cased) == "Åström É e\u0301 \uF900");
    CHECK(joined("\uF900\U0002F800") == "\u8C48 \u4E3D");
    CHECK(joined("İI") == "ii");
    CHECK(joined("가각 ガ") == "\u1100\u1161\u1100\u1161\u11A8 カ");
    CHECK(joined("❤\uFE0F") == "❤");
    CHECK(joined("❤\uFE0F", cased) == "❤\uFE0F");
    CHECK(joined("👍\U0001F3FD a\u200Db") == "👍\U0001F3FD ab");
    CHECK(joined("\uE000\u0378") == "\uE000\u0378");  // private use, unassigned
}

TEST_CASE("a capital sigma is final after a letter and before none") {
    CHECK(joined("ΣΑΣ ΑΣ. Σ ΑΣ\u0301 Α.Σ ΑΣ.Α") == "σας ας . σ ας α . ς ασ . α");
    CHECK(joined("ΑΣ\u00ADΑ 中Σ aΣ中") == "ασα 中 σ aς 中");
    CHECK(joined("1Σ ΑΣ\xFF") == "1σ ας");
}

TEST_CASE("marks that stay are put in canonical order") {
    CHECK(joined("a\u302E\u1715b") == "a\u1715\u302Eb");
    // A stripped mark between the two does not prevent the reordering.
    CHECK(joined("a\u302E\u0301\u1715") == "a\u1715\u302E");
    CHECK(joined("a\u302E\uFE0F\u1715") == "a\u302E\u1715");  // a stripped starter between the two prevents it
    CHECK(joined("a\u302E\u1715", cased) == "a\u302E\u1715");
}

TEST_CASE("a word's length is counted in code points after stripping") {
    std::string line;
    for (int i = 0; i < 100; i++) line += "e\u0301";
    Words words(line, reference);
    REQUIRE(words.next());
    CHECK(words.length() == 100);
    CHECK(words.text() == std::string(100, 'e'));
    CHECK_FALSE(words.next());
}

TEST_CASE("spans are bytes of the original, with the marks that follow") {
    std::string line = " e\u0301X\u00AD\xFFy. \u0301각";  // é is bytes 1-3
    Words words(line, reference, true);
    auto span = [&](std::size_t i) { return std::pair(words.spans()[i].begin, words.spans()[i].end); };
    REQUIRE(words.next());
    CHECK(words.text() == "exy");
    REQUIRE(words.spans().size() == 3);
    CHECK(span(0) == std::pair(1, 4));
    CHECK(span(1) == std::pair(4, 5));
    CHECK(span(2) == std::pair(8, 9));
    REQUIRE(words.next());
    CHECK(words.text() == ".");
    CHECK(span(0) == std::pair(9, 10));
    REQUIRE(words.next());
    REQUIRE(words.spans().size() == 3);  // one syllable becomes three letters
    for (std::size_t i = 0; i < 3; i++) CHECK(span(i) == std::pair(13, 16));
    CHECK_FALSE(words.next());
}

TEST_CASE("each step can be left out") {
    Characters accents = with([](NormaliseOptions& o) { o.strip_accents = false; });
    CHECK(joined("Åé İ가 ΑΣ", accents) == "åé i\u0307가 ας");
    Characters capitals = with([](NormaliseOptions& o) { o.lower = false, o.strip_accents = true; });
    CHECK(joined("Åé İ각 ΑΣ", capitals) == "Ae I\u1100\u1161\u11A8 ΑΣ");
    Characters unclean = with([](NormaliseOptions& o) { o.clean = false; });
    CHECK(joined("a\u0085b\u200Bc\vd", unclean) == "a b\u200Bc d");
    Characters together = with([](NormaliseOptions& o) { o.split_ideographs = false; });
    CHECK(joined("x中文。y", together) == "x中文 。 y");
}

TEST_CASE("Hugging Face's rules differ from BERT's where they are known to") {
    Characters theirs = with([](NormaliseOptions& o) { o.rules = Rules::hugging_face; });
    CHECK(joined("ΣΑΣ", theirs) == "σασ");                    // the library has no final sigma
    CHECK(joined("a\uE000b", theirs) == "ab");                // the library drops private use characters
    CHECK(joined("a\u0378b", theirs) == "a\u0378b");          // unassigned characters stay
    CHECK(joined("x\U0002B820y", theirs) == "x\U0002B820y");  // this is no ideograph for the library
    CHECK(joined("x\U0002B920y", theirs) == "x \U0002B920 y");
    CHECK(joined("Åé 가 中。", theirs) == joined("Åé 가 中。"));
}

TEST_CASE("characters are replaced before anything else, and spans still show the original") {
    Characters ascii = with([](NormaliseOptions& o) {
        o.replace = {{U'\u201C', "\""}, {U'\u2026', "..."}, {U'\u00D7', " X "}, {U'\u00AD', ""}};
    });
    CHECK(joined("\u201Ca\u2026 3\u00D74 \u201D", ascii) == "\" a . . . 3 x 4 \u201D");
    std::string line = "b\u2026c\xFF\u201Cd";  // bytes: b 0, ... 1-4, c 4, an invalid byte 5, quote 6-9, d 9
    std::string spans;
    Words words(line, ascii, true);
    while (words.next())
        for (Span s : words.spans()) spans += std::to_string(s.begin) + "-" + std::to_string(s.end) + " ";
    CHECK(spans == "0-1 1-4 1-4 1-4 4-5 6-9 9-10 ");
    Characters without = with([](NormaliseOptions& o) { o.replace = {{U'\u3000', ""}}; });
    // Invalid bytes that become neighbours do not form a character.
    CHECK(joined("a\xEB\u3000\xB5\xBF z", without) == "a z");
}
