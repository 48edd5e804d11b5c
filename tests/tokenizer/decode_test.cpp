// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>

#include "doctest/doctest.h"
#include "tokenizer/trainer.h"
#include "tokenizer/wordpiece.h"

using namespace masquerade;

namespace {

const std::vector<std::string> sentences = {
    "hello, world! how are you?",
    "it's the students' room, don't you think; they'll say \"yes\" (or \"no\").",
    "pi is 3.14, at 10:30 on may 1, 1955 for $1,000.50 or 50%",
    "a well-known e-mail, and/or a list: [one], {two}; mail me @home #1",
    "at 9 a.m. the u.s. team won... this'll do",
    "“quoted” text — no, “really” … ‘single’, and it’s",
    "你好，世界！今天是2024年5月1日。",
    "他说：“中文abc混排，3.14%。”",
    "コーヒー と紅茶",
    "안녕 세계",
    "price € 5 😀 fine",
};

WordPiece trained(WordPiece::Options options = {}) {
    std::vector<std::string> twice = sentences;
    twice.insert(twice.end(), sentences.begin(), sentences.end());
    return WordPiece(train_vocabulary(twice, 2000, {options.lower, options.single_digits}), options);
}

std::string round(const WordPiece& tokenizer, const std::string& line) {
    std::vector<int> ids = tokenizer.encode(line);
    REQUIRE(std::count(ids.begin(), ids.end(), tokenizer.vocabulary().unk()) == 0);
    CHECK(tokenizer.encode(tokenizer.decode(ids)) == ids);
    return tokenizer.decode(ids);
}

}  // namespace

TEST_CASE("decoding restores what a writer would write") {
    WordPiece tokenizer = trained({false});
    for (std::size_t i : {0, 1, 2, 3, 4, 6, 7, 9, 10}) CHECK(round(tokenizer, sentences[i]) == sentences[i]);
    CHECK(round(tokenizer, sentences[5]) == "“quoted” text—no, “really”… ‘single’, and it’s");
    CHECK(round(tokenizer, sentences[8]) == "コーヒー と紅茶");
    CHECK(round(tokenizer, "  hello ,world !  ") == "hello, world!");
    CHECK(round(tokenizer, "(hello)-world") == "(hello)-world");
    CHECK(round(tokenizer, "") == "");
}

TEST_CASE("single digits are put together again") {
    CHECK(round(trained({true, 200, true}), "may 1, 1955: $1,000.50") == "may 1, 1955: $1,000.50");
}

TEST_CASE("special tokens: silent, or words") {
    WordPiece tokenizer = trained();
    const Vocabulary& v = tokenizer.vocabulary();
    std::vector<int> ids{v.cls()};
    for (int id : tokenizer.encode("hello, ")) ids.push_back(id);
    for (int id : {v.mask(), v.unk(), v.sep(), v.pad()}) ids.push_back(id);
    CHECK(tokenizer.decode(ids) == "hello, [MASK] [UNK]");
    CHECK(tokenizer.decode({}) == "");
    CHECK(tokenizer.decode({v.id("##e"), v.sep(), v.id("##e")}) == "##e ##e");
    CHECK_THROWS_AS(tokenizer.decode({v.size()}), TokenizerError);
}

TEST_CASE("encoding what was decoded gives the same ids, whatever the pieces") {
    WordPiece tokenizer = trained();
    const Vocabulary& v = tokenizer.vocabulary();
    std::uint64_t state = 3;
    for (int n = 0; n < 3000; n++) {
        std::string line;
        for (int i = 0; i < 12; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const std::string& token = v.token(5 + int((state >> 33) % std::uint64_t(v.size() - 5)));
            line += continues(token) ? token.substr(2) : " " + token;
        }
        round(tokenizer, line);
    }
}
