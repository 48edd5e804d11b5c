// SPDX-License-Identifier: MIT
// Tests the probabilities of lengths: counts plus 1.
#include "models/writing/length_table.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/base/error.h"

using namespace masquerade;

namespace {

LengthTable table() {
    LengthTable t;
    for (int target : {3, 3, 3, 5, 2, 2}) t.add(7, target);
    t.add(9, 1);
    return t;
}

constexpr LengthRange all = {0, 5};

}  // namespace

TEST_CASE("length table: the counts of a source's length, plus 1") {
    const LengthTable t = table();
    // counts + 1 of 0 to 5: 1 1 3 4 1 2
    for (const auto& [n, share] : {std::pair(0, 1), {1, 1}, {2, 3}, {3, 4}, {4, 1}, {5, 2}})
        CHECK(std::abs(std::exp(t.law(7, all)[std::size_t(n)]) - share / 12.0) < 1e-12);
    CHECK(std::abs(std::exp(t.law(7, {3, 4})[3]) - 0.8) < 1e-12);
    CHECK(std::abs(std::exp(t.law(8, all)[3]) - 1 / 6.0) < 1e-12);  // no source of this length
    CHECK(best_lengths(t.law(7, all), 3) == std::vector<int>{3, 2, 5});
    CHECK(best_lengths(t.law(7, all), 9) == std::vector<int>{3, 2, 5, 0, 1, 4});
    CHECK(best_lengths(t.law(7, {4, 5}), 2) == std::vector<int>{5, 4});
    CHECK(best_lengths(t.law(8, all), 2) == std::vector<int>{0, 1});
}

TEST_CASE("length table: draws") {
    const LengthTable t = table();
    std::vector<int> counts(6);
    for (int i = 0; i < 1200; i++) counts[std::size_t(draw_length(t.law(7, all), (i + 0.5) / 1200))]++;
    CHECK(counts == std::vector<int>{100, 100, 300, 400, 100, 200});
    CHECK(draw_length(t.law(7, {4, 4}), 0.5) == 4);
}

TEST_CASE("length table: its lines") {
    const std::string lines = "7\t2\t2\n7\t3\t3\n7\t5\t1\n9\t1\t1\n";
    CHECK(table().lines() == lines);
    CHECK(LengthTable::read(lines, "file").lines() == lines);
    CHECK(LengthTable::read("", "file").empty());
    for (const char* wrong : {"7\t2\n", "7\t2\t0\n", "7\t-2\t1\n", "a\t2\t1\n", "7\t2\t1\t4\n", "\n"})
        CHECK_THROWS_WITH_AS(LengthTable::read(lines + wrong, "file"),
                             doctest::Contains("file:5: expected three numbers"), BadInput);
}
