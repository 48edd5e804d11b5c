// SPDX-License-Identifier: MIT
#include "tokenizer/trainer.h"

#include "doctest/doctest.h"
#include "tests/tokenizer/babble.h"
#include "tokenizer/wordpiece.h"

using namespace masquerade;
using namespace masquerade::made_up;

namespace {

TrainerOptions cased() {
    TrainerOptions options;
    options.lower = false;
    return options;
}

}  // namespace

TEST_CASE("special tokens, then characters by frequency, then merges") {
    Lines lines{"aab aab", "aab中, 中z"};
    Vocabulary v = train_vocabulary(lines, 100);
    CHECK(v.token(0) == "[PAD]");
    CHECK(v.unk() == 1);
    CHECK(v.mask() == 4);
    CHECK(tokens_of(v) == std::vector<std::string>{"a", "##a", "b", "##b", "中", "##ab", "aab"});
    CHECK(tokens_of(train_vocabulary(lines, 8)) == std::vector<std::string>{"a", "##a", "b"});
}

TEST_CASE("a character has a form with ## where the options let it continue a word") {
    Lines lines{"中中 \U0002B820 \U0002B820", "x.x"};
    TrainerOptions options;
    CHECK(tokens_of(train_vocabulary(lines, 100, options)) == std::vector<std::string>{"x", "##x", "中", "\U0002B820"});
    options.rules = Rules::hugging_face;
    CHECK(train_vocabulary(lines, 100, options).id("##\U0002B820") > 0);
    options.rules = Rules::google;
    options.split_ideographs = false;
    CHECK(train_vocabulary(lines, 100, options).id("##中") > 0);
}

TEST_CASE("all of the text can be encoded again") {
    Lines lines = babble(200, 11, 15);
    for (bool lower : {true, false}) {
        TrainerOptions options;
        options.lower = lower;
        WordPiece::Options same;
        same.lower = lower;
        WordPiece tokenizer(train_vocabulary(lines, 200, options), same);
        int unknown = 0;
        for (const std::string& line : lines)
            for (int id : tokenizer.encode(line)) unknown += id == tokenizer.vocabulary().unk();
        CHECK(unknown == 0);
    }
    Lines accents{"Ünïcode ünïcode ünïcode"};
    CHECK(train_vocabulary(accents, 100).id("unicode") > 0);
    CHECK(train_vocabulary(accents, 100, cased()).id("ünïcode") > 0);
    CHECK(train_vocabulary(accents, 100, cased()).id("unicode") == -1);
}

TEST_CASE("rare characters are left out, and what holds them teaches nothing") {
    Vocabulary v = train_vocabulary(Lines{"abq abr abs"}, 100);
    CHECK(tokens_of(v) == std::vector<std::string>{"a", "##a", "b", "##b"});
    TrainerOptions options;
    options.min_count = 1;
    CHECK(tokens_of(train_vocabulary(Lines{"ab"}, 100, options)) ==
          std::vector<std::string>{"a", "##a", "b", "##b", "ab"});
    std::string longest(200, 'x');
    CHECK(train_vocabulary(Lines{longest, longest}, 100).id(longest) > 0);
    CHECK(tokens_of(train_vocabulary(Lines{longest + 'x', longest + 'x'}, 100)) ==
          std::vector<std::string>{"x", "##x"});
}

TEST_CASE("sizes are never exceeded") {
    Lines lines = babble(20, 3, 16);
    for (int size = 6; size < 60; size++) CHECK(train_vocabulary(lines, size).size() == size);
}

TEST_CASE("progress is reported seldom") {
    WordCounts words;
    for (const std::string& line : babble(70'000, 5, 16)) words.add(line);
    int asked = 0;
    double before = 0;
    auto watch = [&](double done) {
        asked++;
        CHECK(done >= before);
        CHECK(done <= 1);
        before = done;
    };
    CHECK(tokens_of(train_vocabulary(words, 2000, {}, watch)) == tokens_of(train_vocabulary(words, 2000)));
    CHECK(before > 0.9);
    CHECK(asked >= 5);
    CHECK(asked < 200);
}

TEST_CASE("what cannot be trained is said") {
    CHECK_THROWS_WITH_AS(train_vocabulary(Lines{"a"}, 5), doctest::Contains("6 or more"), TokenizerError);
    CHECK_THROWS_WITH_AS(train_vocabulary(Lines{"", " "}, 50), doctest::Contains("empty"), TokenizerError);
    TrainerOptions options;
    options.min_count = 0;
    CHECK_THROWS_WITH_AS(train_vocabulary(Lines{"a"}, 50, options), doctest::Contains("min_count is 0"),
                         TokenizerError);
}
