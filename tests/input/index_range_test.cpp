// SPDX-License-Identifier: MIT
// Compares ranges of indices with Python's slices: list(range(length))[text].
#include <doctest/doctest.h>

#include "input/index_range.h"

using namespace masquerade;

TEST_CASE("index range: a text is the slice that it is in Python") {
    struct {
        const char* text;
        int length, begin, end;
    } rows[] = {{":", 5, 0, 5},     {"2:", 5, 2, 5},    {":2", 5, 0, 2},   {"1:3", 5, 1, 3}, {"-2:", 5, 3, 5},
                {":-2", 5, 0, 3},   {"-4:-1", 5, 1, 4}, {"-16:", 5, 0, 5}, {":32", 5, 0, 5}, {"7:9", 5, 5, 5},
                {"-9:-7", 5, 0, 0}, {"0", 5, 0, 1},     {"-1", 5, 4, 5},   {"-2", 5, 3, 4},  {"+1:+3", 5, 1, 3}};
    for (const auto& row : rows) {
        CAPTURE(std::string(row.text));
        IndexRange range;
        CHECK_FALSE(read_range(row.text, range, 100, true));
        CHECK(range.begin(row.length) == row.begin);
        CHECK(range.end(row.length) == row.end);
    }
    const std::pair<const char*, const char*> wrong[] = {{"x:2", "x"},     {"1:y", "y"},    {"", ""},
                                                         {"1:2:3", "2:3"}, {"101:", "101"}, {":-101", "-101"},
                                                         {"1.5", "1.5"}};
    for (const auto& [given, part] : wrong) {
        const std::string text = given;
        CAPTURE(text);
        IndexRange range{3, 4};
        CHECK(read_range(text, range, 100, true) == std::string(part));
        CHECK(range.from == 3);
        CHECK(range.to == 4);
    }
    IndexRange range;
    CHECK(read_range("2", range, 100) == std::string("2"));  // a single index is a range only if the caller allows it
}
