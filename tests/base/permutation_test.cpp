// SPDX-License-Identifier: MIT
// Tests random orders that are computed place by place.
#include "engine/base/permutation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

using namespace masquerade;

namespace {

std::vector<std::uint64_t> all_of(const Permutation& order) {
    std::vector<std::uint64_t> all;
    for (std::uint64_t i = 0; i < order.size(); i++) all.push_back(order[i]);
    return all;
}

}  // namespace

TEST_CASE("permutation: every number comes once, for every size") {
    std::vector<std::uint64_t> sizes = {1023, 1024, 1025, 4095, 4097, 65535, 65536, 65537, 100003};
    for (std::uint64_t n = 1; n <= 130; n++) sizes.push_back(n);
    for (const std::uint64_t n : sizes) {
        CAPTURE(n);
        std::vector<bool> seen(n);
        for (const std::uint64_t i : all_of(Permutation(n, 1, "test", 0))) {
            REQUIRE(i < n);
            REQUIRE(!seen[i]);
            seen[i] = true;
        }
    }
}

TEST_CASE("permutation: seed, name and number each give another order, and the same ones the same order") {
    const auto order = all_of(Permutation(1000, 1, "test", 0));
    CHECK(order == all_of(Permutation(1000, 1, "test", 0)));
    CHECK(order != all_of(Permutation(1000, 2, "test", 0)));
    CHECK(order != all_of(Permutation(1000, 1, "other", 0)));
    CHECK(order != all_of(Permutation(1000, 1, "test", 1)));
}

TEST_CASE("permutation: the orders of few numbers are equally frequent") {
    for (const int n : {2, 3, 4, 5, 6}) {
        CAPTURE(n);
        std::map<std::vector<std::uint64_t>, int> counts;
        int orders = 1;
        for (int i = 2; i <= n; i++) orders *= i;
        const int each = 200;
        for (int seed = 0; seed < each * orders; seed++)
            counts[all_of(Permutation(std::uint64_t(n), 7, "test", std::uint32_t(seed)))]++;
        CHECK(int(counts.size()) == orders);
        double chi = 0;
        for (const auto& [order, count] : counts) chi += std::pow(count - each, 2) / each;
        // The statistic has the mean orders - 1 and the variance 2 (orders - 1).
        CHECK(chi < orders - 1 + 5 * std::sqrt(2.0 * (orders - 1)) + 5);
    }
}

TEST_CASE("permutation: places and neighbours of many numbers are like drawn ones") {
    // Counts, over many orders of 1000 numbers, in which tenth the number at each tenth of the places lies, and in
    // which tenth the difference to the next number lies. 1000 is far from a power of two, so the walk through the
    // cycle counts.
    const int n = 1000, tenth = 100, repeats = 400;
    std::vector<double> places(100), steps(10);
    for (std::uint32_t number = 0; number < repeats; number++) {
        const auto order = all_of(Permutation(n, 3, "test", number));
        for (int i = 0; i < n; i++) {
            places[std::size_t(i / tenth * 10) + order[std::size_t(i)] / tenth]++;
            const auto next = order[std::size_t((i + 1) % n)];
            steps[(next + n - order[std::size_t(i)]) % n / tenth]++;
        }
    }
    const double per_place = double(n) * repeats / 100, per_step = double(n) * repeats / 10;
    for (const double count : places) CHECK(std::abs(count - per_place) < 6 * std::sqrt(per_place));
    for (const double count : steps) CHECK(std::abs(count - per_step) < 6 * std::sqrt(per_step));
}

TEST_CASE("permutation: a size beyond 32 bits works") {
    const std::uint64_t n = (std::uint64_t(1) << 40) + 12345;
    const Permutation order(n, 1, "test", 0);
    std::vector<std::uint64_t> some;
    for (std::uint64_t i = 0; i < 10000; i++) some.push_back(order[n - 1 - i * 1000]);
    CHECK(*std::max_element(some.begin(), some.end()) < n);
    CHECK(*std::max_element(some.begin(), some.end()) > n / 2);
    std::sort(some.begin(), some.end());
    CHECK(std::adjacent_find(some.begin(), some.end()) == some.end());
}
