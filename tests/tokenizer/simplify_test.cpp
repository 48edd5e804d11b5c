// SPDX-License-Identifier: MIT
#include "tokenizer/vocabulary_notes.h"

#include "doctest/doctest.h"
#include "tokenizer/wordpiece.h"

using namespace masquerade;

namespace {

Strings tokens_of(const Vocabulary& v) {
    Strings tokens;
    for (int id = 0; id < v.size(); id++) tokens.push_back(v.token(id));
    return tokens;
}

// Tokens that are dropped, and similar tokens that are kept.
const Strings all{"[unused1]", "[PAD]", "a",    "[MASK]", "##b",   "##中",   "中",           "中文",
                  "。",        "##。",  "...",  "[SEP]",  "[UNK]", "[CLS]",  "c++",          "##a",
                  "##c's",     "#",     "##",   "###",    "",      "##€",    "##\u2028",     "日",
                  "=",         "≠",     "##≠x", "かな",   "##か",  "\uF900", "##\U0002B820", "\u3007x"};
const Strings kept{"[PAD]", "[UNK]", "[CLS]",    "[SEP]", "a", "##b", "中",   "。",   "##a",  "#",      "##",
                   "",      "##€",   "##\u2028", "日",    "=", "≠",   "##≠x", "かな", "##か", "\uF900", "\u3007x"};

}  // namespace

TEST_CASE("what no text is cut into is dropped, the rest keeps its order") {
    Vocabulary v{all};
    Simplified s = simplify(v);
    CHECK(tokens_of(s.vocabulary) == kept);
    REQUIRE(int(s.keep_tokens.size()) == s.vocabulary.size());
    for (int id = 0; id < s.vocabulary.size(); id++)
        CHECK(v.token(s.keep_tokens[std::size_t(id)]) == s.vocabulary.token(id));
    CHECK(s.keep_tokens[0] == 1);
    CHECK(s.keep_tokens[4] == 2);
}

TEST_CASE("a text gets the same tokens from the simplified vocabulary") {
    Vocabulary v{all};
    Simplified s = simplify(v);
    for (bool lower : {true, false}) {
        WordPiece::Options options;
        options.lower = lower;
        WordPiece before(v, options), after(s.vocabulary, options);
        for (const char* line :
             {"ab abba", "中文。a中b", "c++ [MASK] # ## ### ...", "a€b a≠x = ≠", "かな 日か \u3007x", "a\U0002B820"}) {
            std::vector<int> old_ids;
            for (int id : after.encode(line)) old_ids.push_back(s.keep_tokens[std::size_t(id)]);
            CHECK(old_ids == before.encode(line));
        }
    }
}

TEST_CASE("a word of ideographs stays where they are not split") {
    WordPiece::Options options;
    options.split_ideographs = false;
    const WordPiece before(Vocabulary{{"[UNK]", "中文", "中", "##文", "文", "a!"}}, options);
    const Simplified s = simplify(before.vocabulary(), {"[UNK]"}, options);
    CHECK(tokens_of(s.vocabulary) == Strings{"[UNK]", "中文", "中", "##文", "文"});
    CHECK(WordPiece(s.vocabulary, options).encode("中文文 中") == before.encode("中文文 中"));
}

TEST_CASE("which tokens come first can be chosen") {
    Vocabulary v{all};
    Strings first{"[UNK]", "[MASK]", "中文", "。"};
    Simplified s = simplify(v, first);
    Strings tokens = tokens_of(s.vocabulary);
    CHECK(Strings(tokens.begin(), tokens.begin() + 4) == first);
    // [UNK] is the only special token of `kept` that stays. The others contain brackets, so they match no word.
    // [MASK] and 中文 stay because they are in `first`.
    CHECK(tokens.size() == kept.size() - 4 + 1 + 2);
    CHECK(s.vocabulary.pad() == -1);
    CHECK(s.keep_tokens[1] == 3);
    CHECK(simplify(v, {}).vocabulary.size() == int(kept.size()) - 4);
    CHECK_THROWS_WITH_AS(simplify(v, {"[UNK]", "[EOS]"}), doctest::Contains("[EOS]"), TokenizerError);
    CHECK_THROWS_WITH_AS(simplify(v, {"[UNK]", "[UNK]"}), doctest::Contains("twice"), TokenizerError);
}

TEST_CASE("of equal tokens the last one stays, as encoding has it") {
    Vocabulary v{{"[UNK]", "a", "b", "a", "[UNK]", "c"}};
    Simplified s = simplify(v, {"[UNK]"});
    CHECK(tokens_of(s.vocabulary) == Strings{"[UNK]", "b", "a", "c"});
    CHECK(s.keep_tokens == std::vector<int>{4, 2, 3, 5});
}
