// SPDX-License-Identifier: MIT
#include "tokenizer/frame.h"

#include <algorithm>
#include <string>

#include "doctest/doctest.h"
#include "tokenizer/vocabulary.h"

using namespace masquerade;

namespace {

std::string show(const Stretch& part) { return std::to_string(part.begin) + "-" + std::to_string(part.end); }

// "first|second first|second ..." of the shares, or "first ..." where there is no second text.
std::string shares(const Frame& frame, int first, std::optional<int> second = {},
                   Rules rules = Rules::google) {
    std::vector<Share> all;
    cut(frame, rules, first, second, all);
    std::string shown;
    for (const Share& share : all)
        shown += (shown.empty() ? "" : " ") + show(share.first) + (second ? "|" + show(share.second) : "");
    return shown;
}

Frame frame_of(int max_length, Truncation truncation = Truncation::longest_first) {
    Frame frame;
    frame.max_length = max_length;
    frame.truncation = truncation;
    return frame;
}

Frame windows_of(int max_length, int overlap, Truncation truncation = Truncation::longest_first) {
    Frame frame = frame_of(max_length, truncation);
    frame.windows = true;
    frame.overlap = overlap;
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
    CHECK(shares({}, 1000000, 3) == "0-1000000|0-3");
    CHECK(shares(frame_of(5), 3) == "0-3");
    CHECK(shares(frame_of(5), 1, 1) == "0-1|0-1");
    CHECK(shares(frame_of(5, Truncation::refuse), 2, 0) == "0-2|0-0");
    CHECK(shares(windows_of(5, 9), 3) == "0-3");
    CHECK(shares(frame_of(2), 0) == "0-0");
}

TEST_CASE("frame: special tokens take their part of max_length") {
    CHECK(shares(frame_of(5), 9) == "0-3");
    CHECK(shares(frame_of(5), 9, 9) == "0-1|0-1");
    CHECK(shares(frame_of(2), 9) == "0-0");
    CHECK(shares(frame_of(3), 9, 9) == "0-0|0-0");
    Frame bare = frame_of(5);
    bare.special = false;
    CHECK(shares(bare, 9) == "0-5");
    CHECK(shares(bare, 9, 9) == "0-3|0-2");
    CHECK_THROWS_WITH_AS(shares(frame_of(1), 0), doctest::Contains("at least 2"), TokenizerError);
    CHECK_THROWS_WITH_AS(shares(frame_of(2), 0, 0), doctest::Contains("at least 3"), TokenizerError);
    CHECK_THROWS_AS(shares(frame_of(-1), 0), TokenizerError);
}

TEST_CASE("frame: longest_first cuts a pair as BERT's reference does") {
    std::vector<Share> all;
    for (int room = 0; room < 14; room++)
        for (int first = 0; first < 14; first++)
            for (int second = 0; second < 14; second++) {
                CAPTURE(room);
                CAPTURE(first);
                CAPTURE(second);
                cut(frame_of(room + 3), Rules::google, first, second, all);
                REQUIRE(all.size() == 1);
                CHECK(all[0] == popped(room, first, second));
            }
}

TEST_CASE("frame: longest_first cuts a pair as Hugging Face's library does") {
    // Row by row for rooms 1 to 7; what tokenizers 0.23.3 keeps of a first text of 0 to 6 tokens, each word for
    // one of these, beside a second one of 0 to 6.
    const char* kept[7] = {"0000000 1000000 1100000 1110000 1111000 1111100 1111110",
                           "0000000 1111111 2111111 2111111 2111111 2111111 2111111",
                           "0000000 1111111 2211111 3221111 3222111 3222211 3222221",
                           "0000000 1111111 2222222 3322222 4322222 4322222 4322222",
                           "0000000 1111111 2222222 3332222 4433222 5433322 5433332",
                           "0000000 1111111 2222222 3333333 4443333 5543333 6543333",
                           "0000000 1111111 2222222 3333333 4444333 5554433 6654443"};
    std::vector<Share> all;
    for (int room = 1; room <= 7; room++)
        for (int first = 0; first < 7; first++)
            for (int second = 0; second < 7; second++) {
                CAPTURE(room);
                CAPTURE(first);
                CAPTURE(second);
                cut(frame_of(room + 3), Rules::hugging_face, first, second, all);
                REQUIRE(all.size() == 1);
                int expected = kept[room - 1][8 * first + second] - '0';
                CHECK(all[0].first == Stretch{0, expected});
                CHECK(all[0].second == Stretch{0, std::min(room, first + second) - expected});
            }
    CHECK(shares(frame_of(10), 9, 9, Rules::google) == "0-4|0-3");
    CHECK(shares(frame_of(10), 9, 9, Rules::hugging_face) == "0-3|0-4");
}

TEST_CASE("frame: one text of a pair is cut, or none") {
    CHECK(shares(frame_of(10, Truncation::only_first), 9, 4) == "0-3|0-4");
    CHECK(shares(frame_of(10, Truncation::only_second), 4, 9) == "0-4|0-3");
    CHECK(shares(frame_of(10, Truncation::only_first), 9) == "0-8");
    CHECK(shares(frame_of(8, Truncation::only_first), 9, 4) == "0-1|0-4");
    CHECK_THROWS_WITH_AS(shares(frame_of(7, Truncation::only_first), 9, 4),
                         doctest::Contains("nothing of it would be left"), TokenizerError);
    CHECK_THROWS_WITH_AS(shares(frame_of(7, Truncation::only_second), 4, 9), doctest::Contains("second"),
                         TokenizerError);
    CHECK_THROWS_WITH_AS(shares(frame_of(7, Truncation::only_second), 9), doctest::Contains("there is none"),
                         TokenizerError);
    CHECK_THROWS_WITH_AS(shares(frame_of(7, Truncation::refuse), 6), doctest::Contains("max_length 7"),
                         TokenizerError);
}

TEST_CASE("frame: the left end is cut") {
    Frame frame = frame_of(8);
    frame.cut_left = true;
    CHECK(shares(frame, 10) == "4-10");
    CHECK(shares(frame, 10, 4) == "7-10|2-4");
    CHECK(shares(frame, 2, 10) == "0-2|7-10");
    frame.truncation = Truncation::only_second;
    CHECK(shares(frame, 2, 10) == "0-2|7-10");
}

TEST_CASE("frame: windows, as the overflowing tokens of Hugging Face's library") {
    CHECK(shares(windows_of(6, 0), 9) == "0-4 4-8 8-9");
    CHECK(shares(windows_of(6, 1), 9) == "0-4 3-7 6-9");
    CHECK(shares(windows_of(6, 2), 6) == "0-4 2-6");
    CHECK(shares(windows_of(6, 3), 6) == "0-4 1-5 2-6");
    CHECK(shares(windows_of(8, 1, Truncation::only_second), 2, 8) == "0-2|0-3 0-2|2-5 0-2|4-7 0-2|6-8");
    CHECK(shares(windows_of(8, 0, Truncation::only_first), 6, 2) == "0-3|0-2 3-6|0-2");
    Frame left = windows_of(6, 1);
    left.cut_left = true;
    CHECK(shares(left, 9) == "5-9 2-6 0-3");
    left.overlap = 0;
    CHECK(shares(left, 9) == "5-9 1-5 0-1");
    for (int overlap : {-1, 4, 5})
        CHECK_THROWS_WITH_AS(shares(windows_of(6, overlap), 9), doctest::Contains("overlap"), TokenizerError);
    CHECK_THROWS_AS(shares(windows_of(2, 0), 1), TokenizerError);
    CHECK_THROWS_WITH_AS(shares(windows_of(8, 0), 6, 6), doctest::Contains("only_second"), TokenizerError);
}

TEST_CASE("frame: windows lose nothing, and overlap by what was asked") {
    std::vector<Share> all;
    for (bool left : {false, true})
        for (int size = 1; size < 6; size++)
            for (int overlap = 0; overlap < size; overlap++)
                for (int length = size + 1; length < 20; length++) {
                    Frame frame = windows_of(size + 2, overlap);
                    frame.cut_left = left;
                    cut(frame, Rules::google, length, {}, all);
                    if (left) std::reverse(all.begin(), all.end());
                    CHECK(all.front().first.begin == 0);
                    CHECK(all.back().first.end == length);
                    for (std::size_t i = 0; i < all.size(); i++) {
                        bool rest = left ? i == 0 : i + 1 == all.size();
                        CHECK((rest ? all[i].first.length() <= size : all[i].first.length() == size));
                        if (i > 0) CHECK(all[i - 1].first.end - all[i].first.begin == overlap);
                    }
                }
}
