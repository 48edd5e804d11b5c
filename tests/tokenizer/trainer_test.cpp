// SPDX-License-Identifier: MIT
#include "tokenizer/trainer.h"

#include <set>

#include "doctest/doctest.h"
#include "tests/tokenizer/babble.h"
#include "tokenizer/utf8.h"
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

TEST_CASE("frequent numbers become pieces, unless digits stay single") {
    Lines lines(5, "in 1999 and 1999,");
    CHECK(train_vocabulary(lines, 100).id("1999") > 0);
    TrainerOptions options;
    options.single_digits = true;
    Vocabulary single = train_vocabulary(lines, 100, options);
    CHECK(single.id("1999") == -1);
    CHECK(single.id("19") == -1);
    CHECK(single.id("##9") == -1);
    CHECK(single.id("9") > 0);
}

TEST_CASE("a character has a form with ## where the options let it continue a word") {
    Lines lines{"中中 \U0002B820 \U0002B820", "x.x"};
    TrainerOptions options;
    CHECK(tokens_of(train_vocabulary(lines, 100, options)) ==
          std::vector<std::string>{"x", "##x", "中", "\U0002B820"});
    options.rules = Rules::hugging_face;
    CHECK(train_vocabulary(lines, 100, options).id("##\U0002B820") > 0);
    options.rules = Rules::google;
    options.split_ideographs = false;
    CHECK(train_vocabulary(lines, 100, options).id("##中") > 0);
    options.replace = {{U'.', U"中"}};
    CHECK(train_vocabulary(Lines{"x.x x.x"}, 100, options).id("x中x") > 0);
}

TEST_CASE("all of the text can be encoded again") {
    Lines lines = babble(200, 11, 15);
    for (bool lower : {true, false})
        for (Score score : {Score::count, Score::likelihood}) {
            TrainerOptions options;
            options.lower = lower;
            options.score = score;
            WordPiece::Options same;
            static_cast<NormaliseOptions&>(same) = options;
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
    TrainerOptions options;
    for (int limit : {0, 1, 5}) {
        options.max_characters = limit;
        for (int size = 6; size < 60; size++) {
            Vocabulary v = train_vocabulary(lines, size, options);
            CHECK(v.size() <= size);
            if (limit == 0) CHECK(v.size() == size);
            std::set<char32_t> alphabet;
            for (const std::string& token : tokens_of(v)) {
                std::string stem = token.substr(continues(token) ? 2 : 0);
                for (std::size_t i = 0; i < stem.size();) {
                    CodePoint c = decode_utf8(stem, i);
                    alphabet.insert(c.value);
                    i += std::size_t(c.length);
                }
            }
            if (limit > 0) CHECK(int(alphabet.size()) <= limit);
        }
    }
}

TEST_CASE("special tokens of one's own") {
    TrainerOptions options;
    options.special = {"[UNK]", "<s>"};
    Vocabulary v = train_vocabulary(Lines{"ab ab"}, 7, options);
    CHECK(tokens_of(v, 0) == std::vector<std::string>{"[UNK]", "<s>", "a", "##a", "b", "##b", "ab"});
    CHECK(v.pad() == -1);
}

TEST_CASE("progress is told seldom and can stop the training") {
    Lines lines = babble(70'000, 5, 16);
    int asked = 0;
    double before = 0;
    std::string phases;
    auto watch = [&](const char* phase, double done) {
        asked++;
        if (phases.empty() || phases.substr(phases.rfind(' ') + 1) != phase) {
            phases += std::string(" ") + phase;
            before = 0;
        }
        CHECK(done >= before);
        CHECK(done <= 1);
        before = done;
        return true;
    };
    Vocabulary v = train_vocabulary(lines, 2000, {}, 2, watch);
    CHECK(tokens_of(v) == tokens_of(train_vocabulary(lines, 2000)));
    CHECK(phases == " counting merging");
    CHECK(before == 1);
    CHECK(asked >= 5);
    CHECK(asked < 200);
    for (int last = 1; last < asked; last++) {
        int left = last;
        auto stop = [&](const char*, double) { return --left > 0; };
        CHECK_THROWS_AS(train_vocabulary(lines, 2000, {}, 2, stop), TrainingStopped);
        CHECK(left == 0);  // asked no more
    }
}

TEST_CASE("what cannot be trained is said") {
    CHECK_THROWS_WITH_AS(train_vocabulary(Lines{"a"}, 5), doctest::Contains("6 or more"), TokenizerError);
    CHECK_THROWS_WITH_AS(train_vocabulary(Lines{"", " "}, 50), doctest::Contains("empty"), TokenizerError);
    CHECK_THROWS_WITH_AS(train_vocabulary(Lines{"a"}, 50, {}, 0), doctest::Contains("threads"),
                         TokenizerError);
    TrainerOptions options;
    options.min_count = 0;
    CHECK_THROWS_WITH_AS(VocabularyTrainer{options}, doctest::Contains("min_count is 0"), TokenizerError);
    for (std::vector<std::string> special :
         {std::vector<std::string>{"[PAD]"}, {"[UNK]", "[UNK]"}, {"[UNK]", ""}, {"[UNK]", "a\nb"}}) {
        TrainerOptions wrong;
        wrong.special = special;
        CHECK_THROWS_AS(VocabularyTrainer{wrong}, TokenizerError);
    }
}
