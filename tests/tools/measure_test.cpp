// SPDX-License-Identifier: MIT
#include "tools/bench/measure.h"

#include "doctest/doctest.h"

using namespace masquerade;

TEST_CASE("measure: median, least and most, in any order") {
    const Spread odd = spread_of({5, 1, 9, 3, 100});
    CHECK(odd.median == 5);
    CHECK(odd.least == 1);
    CHECK(odd.most == 100);
    CHECK(spread_of({4, 1, 2, 8}).median == 3);
    CHECK(spread_of({7}).median == 7);
    CHECK(spread_of({7}).least == spread_of({7}).most);
}

TEST_CASE("measure: short work is repeated, and the time is that of one call") {
    double now = 100;
    int calls = 0;
    auto clock = [&] { return now; };
    auto work = [&](double seconds) {
        calls = 0;
        return [&now, &calls, seconds] { now += seconds, calls++; };
    };
    CHECK(seconds_of(work(0.0625), 0.2, Device::cpu, clock) == doctest::Approx(0.0625));
    CHECK(calls == 4);
    CHECK(seconds_of(work(3), 0.2, Device::cpu, clock) == doctest::Approx(3));
    CHECK(calls == 1);
}

TEST_CASE("measure: three figures") {
    CHECK(figures(1234.4) == "1234");
    CHECK(figures(312.4) == "312");
    CHECK(figures(99.95) == "100");
    CHECK(figures(99.94) == "99.9");
    CHECK(figures(9.995) == "10.0");
    CHECK(figures(9.994) == "9.99");
    CHECK(figures(0.026) == "0.03");
}
