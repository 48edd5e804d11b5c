// SPDX-License-Identifier: MIT
// Tests Philox 4x32-10 against the known answers of its authors, and the numbers that are computed from its words.
#include "engine/base/random.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <vector>

#include "doctest/doctest.h"
#include "tests/normals.h"

using namespace masquerade;

static void check_philox(Four counter, std::uint32_t key0, std::uint32_t key1, Four expected) {
    Four words = philox(counter, key0, key1);
    for (int i = 0; i < 4; i++) CHECK(words[i] == expected[i]);
}

TEST_CASE("philox 4x32-10 gives the known answers") {
    check_philox({{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
    std::uint32_t ones = 0xffffffff;
    check_philox({{ones, ones, ones, ones}}, ones, ones, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
    check_philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0,
                 {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST_CASE("philox 4x32-10 gives the words of cuRAND's own function") {
    std::ifstream golden("tests/golden/curand/words.txt");  // written by words.cpp in the same folder
    int lines = 0;
    Four counter, words;
    std::uint32_t key[2];
    while (golden >> std::hex >> counter.v[0] >> counter.v[1] >> counter.v[2] >> counter.v[3] >> key[0] >> key[1] >>
           words.v[0] >> words.v[1] >> words.v[2] >> words.v[3]) {
        check_philox(counter, key[0], key[1], words);
        lines++;
    }
    CHECK(lines == 32);
}

TEST_CASE("every part of a stream's address changes its numbers") {
    std::set<std::uint32_t> seen;
    auto add = [&](Stream s, std::uint32_t document, std::uint32_t position, std::uint32_t block) {
        Four words = s.at(document, position, block);
        for (int i = 0; i < 4; i++) seen.insert(words[i]);
    };
    Stream base = make_stream(1, "dec.0.dropout", 0);
    add(base, 0, 0, 0);
    add(base, 1, 0, 0);
    add(base, 0, 1, 0);
    add(base, 0, 0, 1);
    add(make_stream(1, "dec.0.dropout", 1), 0, 0, 0);
    add(make_stream(1, "dec.1.dropout", 0), 0, 0, 0);
    add(make_stream(2, "dec.0.dropout", 0), 0, 0, 0);
    add(make_stream(1 + (1ull << 32), "dec.0.dropout", 0), 0, 0, 0);
    CHECK(seen.size() == 32);

    Four again = make_stream(1, "dec.0.dropout", 0).at(0, 0, 0), first = base.at(0, 0, 0);
    for (int i = 0; i < 4; i++) CHECK(again[i] == first[i]);
}

TEST_CASE("uniform numbers lie strictly between 0 and 1") {
    CHECK(uniform(0) == 0x1p-24f);
    CHECK(uniform(0xffffffff) == 1 - 0x1p-24f);
    CHECK(uniform(0x80000000) - uniform(0x7fffffff) == 0x1p-23f);
    Sequence sequence(7, "uniform");
    const int n = 200000;
    double mean = 0, square = 0, least = 1, most = 0;
    for (int i = 0; i < n; i++) {
        double u = sequence.uniform_double();
        mean += u / n;
        square += u * u / n;
        least = std::fmin(least, u);
        most = std::fmax(most, u);
    }
    CHECK(least > 0);
    CHECK(least < 1e-4);
    CHECK(most < 1);
    CHECK(most > 1 - 1e-4);
    CHECK(std::fabs(mean - 1.0 / 2) <= 5 * std::sqrt(1.0 / 12 / n));
    CHECK(std::fabs(square - 1.0 / 3) <= 5 * std::sqrt(4.0 / 45 / n));
}

TEST_CASE("a sequence repeats by its seed, name and numbers alone") {
    Sequence a(3, "shuffle", 5), b(3, "shuffle", 5), c(3, "shuffle", 6);
    int equal = 0;
    for (int i = 0; i < 100; i++) {
        std::uint32_t word = a.bits();
        CHECK(word == b.bits());
        equal += word == c.bits();
    }
    CHECK(equal == 0);
}

TEST_CASE("a sequence is the words of its stream, block after block") {
    Sequence sequence(3, "shuffle", 5, 6);
    const Stream stream = make_stream(3, "shuffle", 0);
    for (std::uint32_t i = 0; i < 12; i++) CHECK(sequence.bits() == stream.at(5, 6, i / 4)[int(i % 4)]);
}

TEST_CASE("below draws every number equally often") {
    // The last n is 3/4 of 2^32. The upper word of the product of a random word and n, without rejection, would give
    // every third number twice as often as the others.
    for (std::uint32_t n : {1u, 2u, 7u, 1000u, 3221225472u}) {
        CAPTURE(n);
        Sequence sequence(11, "below", n);
        const int bins = n < 7 ? int(n) : n < 1000 ? 7 : 3, draws = 300000;
        std::vector<double> count(bins);
        bool inside = true;
        for (int i = 0; i < draws; i++) {
            std::uint32_t x = sequence.below(n);
            inside = inside && x < n;
            count[x % bins]++;
        }
        CHECK(inside);
        double chi_square = 0;
        for (int bin = 0; bin < bins; bin++) {
            double expected = double(draws) * ((n - 1 - bin) / bins + 1) / n;
            chi_square += (count[bin] - expected) * (count[bin] - expected) / expected;
        }
        CHECK(chi_square <= bins - 1 + 6 * std::sqrt(2.0 * bins));
    }
}

TEST_CASE("sine and cosine of turns") {
    double worst_sine = 0, worst_cosine = 0;
    for (std::uint32_t k = 0; k <= 1u << 24; k += 97) {
        float u = float(k) * 0x1p-24f, sine, cosine;
        sine_and_cosine_of_turns(u, sine, cosine);
        double angle = 2 * 3.14159265358979323846 * u;
        worst_sine = std::fmax(worst_sine, std::fabs(sine - std::sin(angle)));
        worst_cosine = std::fmax(worst_cosine, std::fabs(cosine - std::cos(angle)));
    }
    CHECK(worst_sine <= 1.2e-7);
    CHECK(worst_cosine <= 1.2e-7);
    float sine, cosine;
    for (int quarter = 0; quarter <= 4; quarter++) {
        sine_and_cosine_of_turns(float(quarter) / 4, sine, cosine);
        CHECK(sine == float(quarter == 1) - float(quarter == 3));
        CHECK(cosine == float(quarter % 4 == 0) - float(quarter == 2));
    }
}

TEST_CASE("normal numbers follow the formula of Box and Muller") {
    double worst = 0;
    Stream stream = make_stream(1, "formula", 0);
    for (std::uint32_t block = 0; block < 50000; block++) {
        Four words = stream.at(0, 0, block);
        if (block == 0) words = {{0, 0, 0xffffffff, 0xffffffff}};
        FourNormals z = normal4(words);
        for (int i = 0; i < 4; i += 2) {
            double radius = std::sqrt(-2 * std::log(double(uniform(words[i]))));
            double angle = 2 * 3.14159265358979323846 * uniform(words[i + 1]);
            worst = std::fmax(worst, std::fabs(z[i] - radius * std::cos(angle)));
            worst = std::fmax(worst, std::fabs(z[i + 1] - radius * std::sin(angle)));
        }
    }
    CHECK(worst <= 1e-6);
}

TEST_CASE("normal numbers have the moments of a normal distribution") {
    Stream stream = make_stream(5, "moments", 3);
    const int blocks = 100000, n = 4 * blocks;
    double power[5] = {}, pair = 0, beyond_two = 0;
    for (int block = 0; block < blocks; block++) {
        FourNormals z = normal4(stream.at(1, 2, std::uint32_t(block)));
        for (int i = 0; i < 4; i++) {
            double x = z[i];
            power[1] += x / n;
            power[2] += x * x / n;
            power[3] += x * x * x / n;
            power[4] += x * x * x * x / n;
            beyond_two += (std::fabs(x) > 2) / double(n);
            pair += x * z[(i + 1) % 4] / n;
        }
    }
    double deviation = 1 / std::sqrt(double(n));  // standard deviation of the mean of n numbers with variance 1
    CHECK(std::fabs(power[1]) <= 5 * deviation);
    CHECK(std::fabs(power[2] - 1) <= 5 * deviation * std::sqrt(2.0));
    CHECK(std::fabs(power[3]) <= 5 * deviation * std::sqrt(15.0));
    CHECK(std::fabs(power[4] - 3) <= 5 * deviation * std::sqrt(96.0));
    CHECK(std::fabs(beyond_two - 0.0455002639) <= 5 * deviation * 0.2084);
    CHECK(std::fabs(pair) <= 5 * deviation);
}

TEST_CASE("numbers are drawn without replacement, by the seed") {
    const std::vector<std::size_t> some = drawn(10, 4, Sequence(1, "x")), all = drawn(10, 99, Sequence(1, "x"));
    CHECK(some.size() == 4);
    CHECK(std::set<std::size_t>(all.begin(), all.end()).size() == 10);
    CHECK(std::equal(some.begin(), some.end(), all.begin()));
    CHECK(drawn(10, 4, Sequence(2, "x")) != some);
}
