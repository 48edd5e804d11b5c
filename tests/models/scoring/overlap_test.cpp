// SPDX-License-Identifier: MIT
// Compares overlaps of two sentences with overlaps that were counted by hand.
#include "models/scoring/metrics.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace masquerade;

TEST_CASE("overlap: content is a multiset, form a sequence in which runs of content are one mark") {
    const FrequentTokens frequent = {1, 2, 3};
    CHECK(content_overlap({1, 50, 2, 60}, {60, 3, 50}, frequent) == 1);  // the order does not matter
    CHECK(content_overlap({50, 50, 60}, {50, 70}, frequent) == doctest::Approx(2 * 1 / 5.0));
    CHECK(content_overlap({1, 2}, {3}, frequent) == 1);  // neither sentence has content
    CHECK(content_overlap({1, 2}, {50}, frequent) == 0);
    CHECK(form_overlap({1, 50, 60, 2}, {1, 70, 2}, frequent) == 1);  // the form of both is 1 * 2
    CHECK(form_overlap({1, 50, 2}, {2, 50, 1}, frequent) == doctest::Approx(2 * 1 / 6.0));
    CHECK(form_overlap({1, 2, 3}, {1, 3}, frequent) == doctest::Approx(2 * 2 / 5.0));
    CHECK(form_overlap({}, {}, frequent) == 1);
    CHECK(form_overlap({}, {1}, frequent) == 0);
}

TEST_CASE("overlap: the most frequent tokens, of equals the smaller ids, without the marks") {
    std::vector<Sentence> all(2);
    all[0].ids = {101, 7, 7, 9, 8, 102};
    all[1].ids = {101, 7, 8, 5, 102};
    CHECK(most_frequent(all, 3) == FrequentTokens{5, 7, 8});
    CHECK(most_frequent(all, 9) == FrequentTokens{5, 7, 8, 9});
}

TEST_CASE("overlap: the interval of a mean is that of normal errors, and the same for a seed") {
    std::vector<double> values;
    for (int i = 0; i < 400; i++) values.push_back(i % 2);
    const Interval a = bootstrap(values, 1), b = bootstrap(values, 1);
    CHECK(a.mean == 0.5);
    CHECK((a.low == b.low && a.high == b.high));
    CHECK(std::fabs(a.low - (0.5 - 1.96 * 0.025)) <= 0.006);
    CHECK(std::fabs(a.high - (0.5 + 1.96 * 0.025)) <= 0.006);
    CHECK(bootstrap({0.25}, 1).low == 0.25);
}

TEST_CASE(
    "overlap: an interval leaves out resamples without a token, and a mean that is not a number has no interval") {
    const Interval some = bootstrap({6, 0, 0}, 1, {2, 0, 0});  // a third of the resamples are without a token
    CHECK((some.mean == 3 && some.low == 3 && some.high == 3));
    const Interval more = bootstrap({6, 0, 20}, 1, {2, 0, 4});
    CHECK((more.low == 3 && more.high == 5));
    const Interval none = bootstrap({0, 0}, 1, {0, 0}), wrong = bootstrap({1, NAN}, 1);
    CHECK((std::isnan(none.mean) && std::isnan(none.low) && std::isnan(none.high)));
    CHECK((std::isnan(wrong.mean) && std::isnan(wrong.low) && std::isnan(wrong.high)));
}
