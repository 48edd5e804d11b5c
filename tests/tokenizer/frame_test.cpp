// SPDX-License-Identifier: MIT
#include "tokenizer/frame.h"

#include <algorithm>
#include <string>

#include "doctest/doctest.h"
#include "tokenizer/vocabulary.h"

using namespace masquerade;

namespace {

std::string show(const Stretch& part) { return std::to_string(part.begin) + "-" + std::to_string(part.end); }

// "first|second" of what is kept, or "first" where there is no second text.
std::string kept(const Frame& frame, int first, std::optional<int> second = {}, Rules rules = Rules::google) {
    Share share = cut(frame, rules, first, second);
    return show(share.first) + (second ? "|" + show(share.second) : "");
}

Frame frame_of(int max_length, Truncation truncation = Truncation::longest_first) {
    Frame frame;
    frame.max_length = max_length;
    frame.truncation = truncation;
    return frame;
}

// How many tokens of each text BERT's reference keeps: one by one they leave the longer text, the second of
// two equally long ones.
Share popped(int room, int first, int second) {
    while (first + second > room) (first > second ? first : second)--;
    return {{0, first}, {0, second}};
}

}  // namespace

TEST_CASE("frame: what fits is whole") {
    CHECK(kept({}, 1000000, 3) == "0-1000000|0-3");
    CHECK(kept(frame_of(5), 3) == "0-3");
    CHECK(kept(frame_of(5), 1, 1) == "0-1|0-1");
    CHECK(kept(frame_of(2), 0) == "0-0");
}

TEST_CASE("frame: special tokens take their part of max_length") {
    CHECK(kept(frame_of(5), 9) == "0-3");
    CHECK(kept(frame_of(5), 9, 9) == "0-1|0-1");
    CHECK(kept(frame_of(2), 9) == "0-0");
    CHECK(kept(frame_of(3), 9, 9) == "0-0|0-0");
    Frame bare = frame_of(5);
    bare.special = false;
    CHECK(kept(bare, 9) == "0-5");
    CHECK(kept(bare, 9, 9) == "0-3|0-2");
    CHECK_THROWS_WITH_AS(kept(frame_of(1), 0), doctest::Contains("at least 2"), TokenizerError);
    CHECK_THROWS_WITH_AS(kept(frame_of(2), 0, 0), doctest::Contains("at least 3"), TokenizerError);
    CHECK_THROWS_AS(kept(frame_of(-1), 0), TokenizerError);
}

TEST_CASE("frame: longest_first cuts a pair as BERT's reference does") {
    for (int room = 0; room < 14; room++)
        for (int first = 0; first < 14; first++)
            for (int second = 0; second < 14; second++) {
                CAPTURE(room);
                CAPTURE(first);
                CAPTURE(second);
                CHECK(cut(frame_of(room + 3), Rules::google, first, second) == popped(room, first, second));
            }
}

TEST_CASE("frame: longest_first cuts a pair as Hugging Face's library does") {
    // Row by row for rooms 1 to 7; what tokenizers 0.23.3 keeps of a first text of 0 to 6 tokens, each word for
    // one of these, beside a second one of 0 to 6.
    const char* rows[7] = {"0000000 1000000 1100000 1110000 1111000 1111100 1111110",
                           "0000000 1111111 2111111 2111111 2111111 2111111 2111111",
                           "0000000 1111111 2211111 3221111 3222111 3222211 3222221",
                           "0000000 1111111 2222222 3322222 4322222 4322222 4322222",
                           "0000000 1111111 2222222 3332222 4433222 5433322 5433332",
                           "0000000 1111111 2222222 3333333 4443333 5543333 6543333",
                           "0000000 1111111 2222222 3333333 4444333 5554433 6654443"};
    for (int room = 1; room <= 7; room++)
        for (int first = 0; first < 7; first++)
            for (int second = 0; second < 7; second++) {
                CAPTURE(room);
                CAPTURE(first);
                CAPTURE(second);
                Share share = cut(frame_of(room + 3), Rules::hugging_face, first, second);
                int expected = rows[room - 1][8 * first + second] - '0';
                CHECK(share.first == Stretch{0, expected});
                CHECK(share.second == Stretch{0, std::min(room, first + second) - expected});
            }
    CHECK(kept(frame_of(10), 9, 9, Rules::google) == "0-4|0-3");
    CHECK(kept(frame_of(10), 9, 9, Rules::hugging_face) == "0-3|0-4");
}

TEST_CASE("frame: one text of a pair is cut, or none") {
    CHECK(kept(frame_of(10, Truncation::only_first), 9, 4) == "0-3|0-4");
    CHECK(kept(frame_of(10, Truncation::only_second), 4, 9) == "0-4|0-3");
    CHECK(kept(frame_of(10, Truncation::only_first), 9) == "0-8");
    CHECK(kept(frame_of(8, Truncation::only_first), 9, 4) == "0-1|0-4");
    CHECK_THROWS_WITH_AS(kept(frame_of(7, Truncation::only_first), 9, 4),
                         doctest::Contains("nothing of it would be left"), TokenizerError);
    CHECK_THROWS_WITH_AS(kept(frame_of(7, Truncation::only_second), 4, 9), doctest::Contains("second"),
                         TokenizerError);
    CHECK_THROWS_WITH_AS(kept(frame_of(7, Truncation::only_second), 9), doctest::Contains("there is none"),
                         TokenizerError);
}

TEST_CASE("frame: the left end is cut") {
    Frame frame = frame_of(8);
    frame.cut_left = true;
    CHECK(kept(frame, 10) == "4-10");
    CHECK(kept(frame, 10, 4) == "7-10|2-4");
    CHECK(kept(frame, 2, 10) == "0-2|7-10");
    frame.truncation = Truncation::only_second;
    CHECK(kept(frame, 2, 10) == "0-2|7-10");
}
