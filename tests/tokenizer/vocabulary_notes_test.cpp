// SPDX-License-Identifier: MIT
#include "tokenizer/vocabulary_notes.h"

#include "doctest/doctest.h"

using namespace masquerade;

TEST_CASE("vocabulary notes: what deserves a look") {
    Strings good = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "sun", "##s", "\u4e2d", "!", "##\u03c2", "\u03c3"};
    CHECK(vocabulary_notes(WordPiece(Vocabulary(good))).empty());

    Strings odd = {"[UNK]", "a",    "",  "##",     "\u2028",   "a", "##\u4e2d",
                   "##!",   "ab-c", "A", "\u00e9", "##\u0301", "b", "##3"};
    const std::string never = " tokens never match: no text gives such a word or such a part of a word (lines ";
    CHECK(vocabulary_notes(WordPiece(Vocabulary(odd))) ==
          Strings{"there is no [PAD], [CLS], [SEP], [MASK]",
                  "1 tokens occur again further down, and have the last of their ids (lines 2 \"a\")",
                  "9" + never + "3 \"\", 4 \"##\", 5 \"\u2028\" ...)"});

    WordPiece::Options options;
    options.lower = options.split_ideographs = false;
    odd.erase(odd.begin() + 2, odd.begin() + 6);
    CHECK(vocabulary_notes(WordPiece(Vocabulary(odd), options))[1] == "2" + never + "4 \"##!\", 5 \"ab-c\")");

    // Added tokens that are recognised in text, and tokens that hold a character that is replaced in text.
    options.replace = {{'&', "&amp;"}};
    const Vocabulary more(Strings{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<user>", "&", "amp", ";"});
    AddedToken user{"<user>", 5, false};
    CHECK(vocabulary_notes(WordPiece(more, options, {user})).empty());
    user.special = true;
    CHECK(vocabulary_notes(WordPiece(more, options, {user})) == Strings{"1" + never + "6 \"<user>\")"});
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
    CHECK(casing_note(Vocabulary(uncased), false).find("0 of 200 tokens with letters have capital ones, yet") == 0);
    CHECK(casing_note(Vocabulary(cased), true).find("67 of 200 tokens with letters have capital ones, yet") == 0);
    CHECK(casing_note(Vocabulary({"[UNK]", "\u4e2d"}), false) == "");
}
