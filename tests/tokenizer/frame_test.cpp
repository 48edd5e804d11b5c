// SPDX-License-Identifier: MIT
#include "tokenizer/frame.h"

#include <string>

#include "doctest/doctest.h"

using namespace masquerade;

TEST_CASE("frame: longest_first cuts a pair as BERT's reference does") {
    for (int room = 0; room < 14; room++)
        for (int first = 0; first < 14; first++)
            for (int second = 0; second < 14; second++) {
                CAPTURE(room);
                CAPTURE(first);
                CAPTURE(second);
                // Tokens are removed one by one from the longer text or, if both are equally long, from the second one.
                Lengths popped{first, second};
                while (popped.first + popped.second > room)
                    (popped.first > popped.second ? popped.first : popped.second)--;
                const Lengths kept = longest_first(Rules::google, room, first, second);
                CHECK(kept.first == popped.first);
                CHECK(kept.second == popped.second);
            }
}

TEST_CASE("frame: longest_first cuts a pair as Hugging Face's library does") {
    // Results of tokenizers 0.23.3. Row r is for room r + 1. Word i of a row is for a first text of i tokens, and digit
    // j of a word is for a second text of j tokens: the number of tokens that are kept of the first text.
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
                const Lengths kept = longest_first(Rules::hugging_face, room, first, second);
                CHECK(kept.first == rows[room - 1][8 * first + second] - '0');
                CHECK(kept.first + kept.second == std::min(room, first + second));
            }
}

TEST_CASE("frame: one text of a pair is cut, or none") {
    auto left = [](Truncation which, int room, int first, int second) {
        const auto kept = cut(which, Rules::google, room, {first, second});
        return kept ? std::to_string(kept->first) + "|" + std::to_string(kept->second) : "nothing";
    };
    CHECK(left(Truncation::longest, 7, 9, 9) == "4|3");
    CHECK(left(Truncation::longest, 0, 9, 0) == "0|0");
    CHECK(left(Truncation::first, 7, 9, 4) == "3|4");
    CHECK(left(Truncation::second, 7, 4, 9) == "4|3");
    CHECK(left(Truncation::first, 5, 9, 4) == "1|4");
    CHECK(left(Truncation::first, 4, 9, 4) == "nothing");
    CHECK(left(Truncation::second, 7, 9, 0) == "nothing");
    CHECK(left(Truncation::second, 9, 9, 0) == "9|0");
    CHECK(left(Truncation::first, 1, 2147483647, 2147483647) == "nothing");
}
