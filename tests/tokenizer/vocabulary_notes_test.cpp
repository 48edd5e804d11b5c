// SPDX-License-Identifier: MIT
#include "tokenizer/vocabulary_notes.h"

#include "doctest/doctest.h"

using namespace masquerade;

using Strings = std::vector<std::string>;

TEST_CASE("vocabulary notes: what deserves a look") {
    Strings good = {"[PAD]", "[UNK]",  "[CLS]", "[SEP]",    "[MASK]", "sun",
                    "##s",   "\u4e2d", "!",     "##\u03c2", "\u03c3"};
    CHECK(vocabulary_notes(Vocabulary(good)) ==
          Strings{"5 tokens in brackets are left to be asked for by name (lines 1 \"[PAD]\", 2 \"[UNK]\", 3 "
                  "\"[CLS]\" ...)"});

    Strings odd = {"[UNK]", "a",    "",  "##",     "\u2028",   "a", "##\u4e2d",
                   "##!",   "ab-c", "A", "\u00e9", "##\u0301", "b", "##3"};
    Strings notes = vocabulary_notes(Vocabulary(odd));
    CHECK(notes ==
          Strings{"there is no [PAD], [CLS], [SEP], [MASK]",
                  "1 token stands again further down, and has the id of there (line 2 \"a\")",
                  "4 tokens are blank and are never found (lines 3 \"\", 4 \"##\", 5 \"<U+2028>\" ...)",
                  "2 tokens continue a word with a character that is always a word by itself, and are never "
                  "found (lines 7 \"##\u4e2d\", 8 \"##!\")",
                  "1 token is several words and is never found (line 9 \"ab-c\")",
                  "2 tokens hold what normalised text does not, and are never found (lines 10 \"A\", 11 "
                  "\"\u00e9\")",
                  "1 token in brackets is left to be asked for by name (line 1 \"[UNK]\")"});

    NormaliseOptions options;
    options.lower = options.split_ideographs = false;
    options.single_digits = true;
    notes = vocabulary_notes(Vocabulary(odd), options);
    REQUIRE(notes.size() == 6);
    CHECK(notes[3].find("2 tokens continue") == 0);
    CHECK(notes[3].find("8 \"##!\", 14 \"##3\"") != std::string::npos);
}

TEST_CASE("vocabulary notes: a vocabulary for the other case") {
    Strings uncased = {"[CLS]", "[UNK]"}, cased = uncased;
    for (int i = 0; i < 200; i++) {
        std::string number = std::to_string(i);
        uncased.push_back("w" + number);
        cased.push_back((i % 3 == 0 ? "W" : "w") + number);
    }
    CHECK(casing_note(Vocabulary(uncased), true) == "");
    CHECK(casing_note(Vocabulary(cased), false) == "");
    CHECK(
        casing_note(Vocabulary(uncased), false).find("0 of 200 tokens with letters have capital ones, yet") ==
        0);
    CHECK(casing_note(Vocabulary(cased), true).find("67 of 200 tokens with letters have capital ones, yet") ==
          0);
    CHECK(casing_note(Vocabulary({"[UNK]", "\u4e2d"}), false) == "");
}
