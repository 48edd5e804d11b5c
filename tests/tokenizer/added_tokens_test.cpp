// SPDX-License-Identifier: MIT
// Unless a case says otherwise, the expected tokens and ids are those of the Hugging Face library (tokenizers 0.23.3).
#include "tokenizer/added_tokens.h"

#include <random>

#include "doctest/doctest.h"
#include "input/utf8.h"
#include "tokenizer/normalise.h"
#include "tokenizer/vocabulary.h"

using namespace masquerade;

namespace {

// Returns the parts of a line, such as "ordinary|{3 token}": the bytes of each part, and the id of each token.
std::string show(const AddedTokens& tokens, std::string_view line) {
    std::string shown;
    int last = 0;
    for (AddedTokens::Part part : tokens.split(line)) {
        CHECK(part.begin == last);
        CHECK(part.end >= part.begin);
        last = part.end;
        std::string bytes(line.substr(std::size_t(part.begin), std::size_t(part.end - part.begin)));
        if (!shown.empty()) shown += '|';
        shown += part.id < 0 ? bytes : "{" + std::to_string(part.id) + " " + bytes + "}";
    }
    CHECK(last == int(line.size()));
    return shown;
}

AddedToken token(std::string text, int id) { return {std::move(text), id}; }

AddedToken word(std::string text, int id) {
    AddedToken t = token(std::move(text), id);
    t.single_word = true;
    return t;
}

AddedToken strip(std::string text, int id, bool left, bool right) {
    AddedToken t = token(std::move(text), id);
    t.strip_left = left;
    t.strip_right = right;
    return t;
}

AddedToken normalised(AddedToken t) {
    t.normalised = true;
    t.special = false;
    return t;
}

const Characters& uncased() {
    static const Characters characters([] {
        NormaliseOptions options;
        options.rules = Rules::hugging_face;
        return options;
    }());
    return characters;
}

AddedTokens made(std::vector<AddedToken> tokens) { return AddedTokens(std::move(tokens), uncased()); }

}  // namespace

TEST_CASE("added tokens: the leftmost, then the longest") {
    AddedTokens tokens = made({token("[MASK]", 4), token("[M", 5), token("[MASK]s", 6), token("bc", 7)});
    CHECK(show(tokens, "") == "");
    CHECK(show(tokens, "no token") == "no token");
    CHECK(show(tokens, "a [MASK]") == "a |{4 [MASK]}");
    CHECK(show(tokens, "[MASK][MASK]sa[mask]") == "{4 [MASK]}|{6 [MASK]s}|a[mask]");
    CHECK(show(tokens, "[MAS[MASK") == "{5 [M}|AS|{5 [M}|ASK");
    CHECK(show(tokens, "[") == "[");
    CHECK(show(tokens, "abcbc bc") == "a|{7 bc}|{7 bc}| |{7 bc}");
    CHECK_FALSE(tokens.may_hold("lower case, no racket"));
    CHECK(tokens.may_hold("a ["));
    CHECK(show(made({token("\u00e9t\u00e9", 1)}), "l'\u00e9t\u00e9") == "l'|{1 \u00e9t\u00e9}");
}

TEST_CASE("added tokens: a single word has no letter, digit, mark or connector beside it") {
    AddedTokens tokens = made({word("<m>", 1)});
    CHECK(show(tokens, "<m>, <m>-<m>.") == "{1 <m>}|, |{1 <m>}|-|{1 <m>}|.");
    CHECK(show(tokens, "a<m> <m>2 <m>_ \u00e9<m> <m>\u4e2d") == "a<m> <m>2 <m>_ \u00e9<m> <m>\u4e2d");
    CHECK(show(tokens, "\u25cc\u0330<m> <m>\u200d") == "\u25cc\u0330<m> <m>\u200d");
    CHECK(show(tokens, "<m>\u20ac<m>\u2028<m>") == "{1 <m>}|\u20ac|{1 <m>}|\u2028|{1 <m>}");

    // If a match is refused, neither a shorter token nor a token inside it replaces it.
    AddedTokens nested = made({word("abc", 1), token("ab", 2), token("bc", 3)});
    CHECK(show(nested, "abc abcd xabc xab") == "{1 abc}| abcd xabc x|{2 ab}");
}

TEST_CASE("added tokens: white space that a token takes") {
    AddedTokens tokens =
        made({strip("<l>", 1, true, false), strip("<r>", 2, false, true), strip("<b>", 3, true, true)});
    CHECK(show(tokens, "a  <l>  b") == "a|{1   <l>}|  b");
    CHECK(show(tokens, "a  <r>  b") == "a  |{2 <r>  }|b");
    CHECK(show(tokens, "a \t<b>\u3000\u2028\u0085b") == "a|{3  \t<b>\u3000\u2028\u0085}|b");
    CHECK(show(tokens, "a<r>  <l> <b>  <b>") == "a|{2 <r>  }|{1 <l>}|{3  <b>  }|{3 <b>}");
    CHECK(show(tokens, "\u200b<l>") == "\u200b|{1 <l>}");  // zero width, but not white space

    // If another token has already taken the white space, a token of white space is empty here. In the library, the two
    // overlap.
    AddedTokens spaces = made({strip("<r>", 1, false, true), token(" ", 2), token("  ", 3)});
    CHECK(show(spaces, "<r> x y") == "{1 <r> }|{2 }|x|{2  }|y");
    CHECK(show(spaces, "<r>   x") == "{1 <r>   }|{3 }|{2 }|x");
    // A token is left out if another token has taken a part of it. The library leaves out this part, too.
    AddedTokens greedy = made({strip(" ", 1, true, true)});
    CHECK(show(greedy, "<  < ") == "<|{1   }|<|{1  }");
}

TEST_CASE("added tokens: normalised ones match normalised text, after the others") {
    AddedTokens tokens({normalised(token("Name", 1)), normalised(word("AB", 2)), token("Nam", 3),
                        normalised(strip("x y", 4, true, true))},
                       uncased());
    CHECK(show(tokens, "nAMe, name; NAM") == "{1 nAMe}|, |{1 name}|; NAM");
    CHECK(show(tokens, "Name") == "{3 Nam}|e");
    CHECK(show(tokens, "aB xab abX ab.") == "{2 aB}| xab abX |{2 ab}|.");
    CHECK(show(tokens, "NamAB") == "{3 Nam}|{2 AB}");  // the second token matches only behind the first one
    CHECK(show(tokens, "X Y  \tx y  NAME") == "{4 X Y  \t}|{4 x y  }|{1 NAME}");
    CHECK(tokens.may_hold("anything"));

    // If two tokens have the same form, the first one wins. In the library, sometimes one wins and sometimes the other.
    CHECK(show(AddedTokens({normalised(token("Ab", 1)), normalised(token("aB", 2))}, uncased()), "ab") == "{1 ab}");
}

TEST_CASE("added tokens: in text that BERT's normaliser changes") {
    AddedTokens tokens({normalised(token("\u4e2d\u56fd", 1)), normalised(token("Name", 2)),
                        normalised(word("\u00c9", 3)), normalised(token("\uac01", 4))},
                       uncased());
    CHECK(show(tokens, "\u6211\u4e2d\u56fd\u4eba") == "\u6211|{1 \u4e2d\u56fd}|\u4eba");
    CHECK(show(tokens, "x\u4e2d\u56fd") == "x|{1 \u4e2d\u56fd}");
    CHECK(show(tokens, "\u4e2d \u56fd") == "\u4e2d \u56fd");  // the text has a space that the token does not have
    CHECK(show(tokens, "na\u00f1a N\u00c3me na\u0001me") == "na\u00f1a |{2 N\u00c3me}| |{2 na\u0001me}");
    // Stripped marks that follow a token belong to it, as with pieces of words. The library leaves them out.
    CHECK(show(tokens, "naMe\u0301x") == "{2 naMe\u0301}|x");
    CHECK(show(tokens, "\u0301name") == "\u0301|{2 name}");
    CHECK(show(tokens, "\u00e9 E e\u0301 ex") == "{3 \u00e9}| |{3 E}| |{3 e\u0301}| ex");
    CHECK(show(tokens, "\uac01\uac00") == "{4 \uac01}|\uac00");
    // If a token is one jamo of a syllable, it takes the whole syllable. The library continues with the rest of the
    // syllable.
    CHECK(show(AddedTokens({normalised(token("\u1100", 1))}, uncased()), "x\uac01y") == "x|{1 \uac01}|y");
    // A token whose form is empty is never found.
    AddedTokens nothing({normalised(token("\u0301", 1)), token("", 2)}, uncased());
    CHECK(nothing.empty());
    CHECK(show(nothing, "e\u0301") == "e\u0301");
}

TEST_CASE("added tokens: special ones that stay text still hide what overlaps them") {
    AddedToken ordinary = token("b", 2);
    ordinary.special = false;
    AddedTokens tokens({token("ab", 1), ordinary}, uncased(), false);
    CHECK(show(tokens, "ab b abb") == "ab |{2 b}| ab|{2 b}");
    AddedTokens none({token("[SEP]", 1)}, uncased(), false);
    CHECK(none.empty());
    CHECK_FALSE(none.may_hold("[SEP]"));
    CHECK(AddedTokens().empty());
    CHECK(show(AddedTokens(), "[SEP]") == "[SEP]");
}

TEST_CASE("added tokens: bytes that are not UTF-8") {
    // Invalid bytes are ignored, as in the reference, which drops them first.
    AddedTokens tokens = made({token("[MASK]", 1), word("<m>", 2), strip("<r>", 3, false, true)});
    CHECK(show(tokens, "\xff[MA\xc3SK]\xe4") == "\xff|{1 [MA\xc3SK]}|\xe4");
    CHECK(show(tokens, "a\xff<m> \xff<m>") == "a\xff<m> \xff|{2 <m>}");
    CHECK(show(tokens, "<r>\x80 \x80 x") == "{3 <r>\x80 \x80 }|x");
    CHECK_THROWS_WITH_AS(made({token("a\xff", 7)}), doctest::Contains("id 7 is not UTF-8"), TokenizerError);
    CHECK_THROWS_WITH_AS(made({token("a", -1)}), doctest::Contains("expected 0 or more"), TokenizerError);
}

TEST_CASE("added tokens: any bytes give parts in order that cover the line") {
    std::vector<AddedToken> all = {token("<a>", 0),
                                   strip("b ", 1, true, true),
                                   normalised(token("\u00e9A", 2)),
                                   normalised(strip(" \u4e2d", 3, true, true)),
                                   word("\u4e2d", 4),
                                   normalised(strip(" ", 5, true, true))};
    AddedTokens tokens(all, uncased());
    const char* pieces[] = {"<a>",  "b ",   "\u00e9", "A",        "\u4e2d", " ",  "\u3000", "\u0301",
                            "\xe4", "\xb8", "\xff",   "\xf0\x9f", "\uac01", "\t", "<",      "\u0130"};
    std::mt19937 random(7);
    for (int i = 0; i < 20000; i++) {
        std::string line;
        for (unsigned n = random() % 12; n > 0; n--) line += pieces[random() % std::size(pieces)];
        CAPTURE(line);
        int last = 0;
        for (AddedTokens::Part part : tokens.split(line)) {
            REQUIRE(part.begin == last);
            REQUIRE(part.end >= part.begin);
            REQUIRE((part.id >= 0 || part.end > part.begin));
            last = part.end;
        }
        REQUIRE(last == int(line.size()));
    }
}

TEST_CASE("normalised text holds the words, and the spaces between them") {
    CHECK(normalise(" A\u00c9 \t b\u0001,c ", uncased()).text == " ae   b,c ");
    CHECK(normalise("a\u4e2d\u56fd", uncased()).text == "a \u4e2d  \u56fd ");
    CHECK(normalise(" \u0301 \u0301", uncased()).text == "  ");
    Normalised n = normalise("\u00c9\u4e2d", uncased());
    REQUIRE(n.text == "e \u4e2d ");
    int expected[][2] = {{0, 2}, {2, 2}, {2, 5}, {2, 5}, {2, 5}, {5, 5}};
    REQUIRE(n.spans.size() == 6);
    for (int i = 0; i < 6; i++) {
        CHECK(n.spans[std::size_t(i)].begin == expected[i][0]);
        CHECK(n.spans[std::size_t(i)].end == expected[i][1]);
    }
    // A line of ASCII is normalised by a faster function. The stripped mark at the end of the line prevents this.
    NormaliseOptions cased;
    cased.lower = cased.clean = false;
    std::string all;
    for (int c = 0; c < 128; c++) (all += char(c)) += "A";
    for (const Characters& c : {uncased(), Characters(cased)}) {
        CHECK(normalise(all, c).text + "\u0301" == normalise(all + "\u0301", c).text + (c.lowers() ? "\u0301" : ""));
        CHECK(normalise(all, c).text.size() == normalise(all, c).spans.size());
    }

    // With the rules of google and of hugging-face, the words of the normalised text are the words of the line.
    const char32_t first[] = {0,      'A',    0xC0,   0x2F0,  0x3A0,  0x590,   0x1100,
                              0x2000, 0x3000, 0x4E00, 0xAC00, 0xF900, 0x1D160, 0x2F800};
    std::mt19937 random(11);
    for (const Characters& characters : {uncased(), Characters(NormaliseOptions())}) {
        for (int i = 0; i < 5000; i++) {
            std::string line, words, text;
            for (unsigned n_left = random() % 8; n_left > 0; n_left--)
                append_utf8(line, first[random() % std::size(first)] + random() % 64);
            CAPTURE(line);
            for (Words word(line, characters); word.next();) words += word.text();
            Normalised normal = normalise(line, characters);
            REQUIRE(normal.spans.size() == normal.text.size());
            int last = 0;
            for (std::size_t k = 0; k < normal.text.size(); k++) {
                if (normal.text[k] != ' ') text += normal.text[k];
                REQUIRE(normal.spans[k].begin >= last);
                REQUIRE(normal.spans[k].end >= normal.spans[k].begin);
                REQUIRE(normal.spans[k].end <= int(line.size()));
                last = normal.spans[k].begin;
            }
            REQUIRE(text == words);
        }
    }
}

TEST_CASE("word characters") {
    for (char32_t c : U"azAZ09_\u00e9\u0301\u4e2d\uac00\u203f\u2160\u24b6\u200c\u200d\U0001f130\U00020000")
        if (c != 0) CHECK(is_word_character(c));
    for (char32_t c : U" -[]{}'.\u00b2\u00bd\u20ac\u2028\u3002\ufffd\U0001f600\U0010ffff")
        CHECK_FALSE(is_word_character(c));
    int count = 0;
    for (char32_t c = 0; c <= 0x10FFFF; c++) count += is_word_character(c);
    CHECK(count == 135202);  // the number of \w characters in the library, among the characters of Unicode 14
}
