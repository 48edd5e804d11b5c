// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "engine/train/schedule.h"

using namespace masquerade;

TEST_CASE("schedule: the learning rate rises, stays, falls to its floor") {
    auto rate = [](std::int64_t step) { return learning_rate_at(step, 2.0, 10, 50, 100); };
    CHECK(rate(0) == doctest::Approx(0.2));
    CHECK(rate(4) == doctest::Approx(1.0));
    CHECK(rate(9) == 2.0);
    CHECK(rate(10) == 2.0);
    CHECK(rate(50) == 2.0);
    CHECK(rate(75) == doctest::Approx(1.0));
    CHECK(rate(99) == doctest::Approx(2.0 * 0.03));
    CHECK(rate(100000) == doctest::Approx(2.0 * 0.03));
    for (std::int64_t step = 1; step < 120; step++) {
        CHECK(rate(step) > 0);
        if (step <= 10) CHECK(rate(step) >= rate(step - 1));
        if (step > 50) CHECK(rate(step) <= rate(step - 1));
    }
    CHECK(learning_rate_at(0, 2.0, 0, 50, 100) == 2.0);   // no warm-up
    CHECK(learning_rate_at(1000, 2.0, 10, 0, 0) == 2.0);  // the end of the schedule is not known yet
}

TEST_CASE("schedule: the weight of the KL term") {
    CHECK(kl_weight_at("constant", 0, 100, 0.5) == 0.5);
    CHECK(kl_weight_at("linear", 0, 100, 0.5) == 0.0);
    CHECK(kl_weight_at("linear", 25, 0, 0.5) == 0.0);  // the length of the schedule is not known yet
    CHECK(kl_weight_at("cyclical", 25, 0, 0.5) == 0.0);
    CHECK(kl_weight_at("constant", 25, 0, 0.5) == 0.5);
    CHECK(kl_weight_at("linear", 25, 100, 0.5) == doctest::Approx(0.25));
    CHECK(kl_weight_at("linear", 50, 100, 0.5) == 0.5);
    CHECK(kl_weight_at("linear", 99, 100, 0.5) == 0.5);
    for (int cycle = 0; cycle < 4; cycle++) {  // each cycle has 25 steps
        CHECK(kl_weight_at("cyclical", 25 * cycle, 100, 1.0) == doctest::Approx(0.0));
        CHECK(kl_weight_at("cyclical", 25 * cycle + 5, 100, 1.0) == doctest::Approx(0.4));
        CHECK(kl_weight_at("cyclical", 25 * cycle + 20, 100, 1.0) == 1.0);
    }
    CHECK(kl_weight_at("cyclical", 100, 100, 1.0) == 1.0);
    CHECK(kl_weight_at("cyclical", 500, 100, 1.0) == 1.0);
}
