// SPDX-License-Identifier: MIT
#include "tools/bench/many.h"

#include "doctest/doctest.h"

using namespace masquerade;

TEST_CASE("many: what a process exchanges in a step") {
    // Two calls for the gradient, four for small messages. A process sends its sum but for its own slice, and then its
    // slice to each other process.
    const StepExchange none = exchange_of_step(4, 1, 1000), two = exchange_of_step(4, 2, 1000),
                       four = exchange_of_step(4, 4, 1000);
    CHECK(none.calls == 0);
    CHECK(none.bytes == 0);
    CHECK(two.calls == 6);
    CHECK(two.bytes == doctest::Approx(500 + 500));
    CHECK(four.calls == 6);
    CHECK(four.bytes == doctest::Approx(3 * 250 + 3 * 250));
    // ((0 + 1) + (2 + 3)) + 4: process 0 has the parts 0, 1, 2, and process 1 the parts 3, 4. Each has two sums.
    const StepExchange five = exchange_of_step(5, 2, 1000);
    CHECK(five.calls == 7);
    CHECK(five.bytes == doctest::Approx(2 * 500 + 500));
    // With one part, process 1 sends nothing but its slice of the result.
    CHECK(exchange_of_step(1, 2, 1000).bytes == doctest::Approx(500 + 500));
}

TEST_CASE("many: the time of a step") {
    Cluster c;
    c.part = 0.010, c.update = 0.002, c.latency = 0.0001, c.bandwidth = 1e6;
    const Prediction one = predict(c, 8, 1, 4000), two = predict(c, 8, 2, 4000), eight = predict(c, 8, 8, 4000),
                     three = predict(c, 8, 3, 4000), more = predict(c, 8, 16, 4000);
    CHECK(one.compute == doctest::Approx(0.082));
    CHECK(one.exchange == 0);
    CHECK(one.step() == doctest::Approx(0.082));
    CHECK(one.parts_per_second() == doctest::Approx(8 / 0.082));
    CHECK(two.compute == doctest::Approx(0.042));
    CHECK(two.exchange == doctest::Approx(6 * 0.0001 + 4000e-6));
    CHECK(eight.compute == doctest::Approx(0.012));
    CHECK(eight.exchange == doctest::Approx(6 * 0.0001 + 2 * 4000e-6 * 7 / 8));
    CHECK(three.compute == doctest::Approx(3 * 0.010 + 0.002));  // 3, 3 and 2 parts
    CHECK(more.compute == doctest::Approx(0.012));               // half of the processes compute nothing

    // Nodes of four processes. Of 7000 bytes, 1000 go to each other process: 3000 within the node, 4000 to the other.
    c.node = 4, c.bandwidth_between = 1e5;
    CHECK(predict(c, 8, 8, 4000).exchange == doctest::Approx(6 * 0.0001 + 4000e-5));
    c.bandwidth_between = 1e7;
    CHECK(predict(c, 8, 8, 4000).exchange == doctest::Approx(6 * 0.0001 + 3000e-6));
    CHECK(predict(c, 8, 4, 4000).exchange == doctest::Approx(6 * 0.0001 + 6000e-6));
    CHECK(predict(c, 8, 2, 4000).exchange == doctest::Approx(6 * 0.0001 + 4000e-6));  // fewer than a node has
}

TEST_CASE("many: latency and bandwidth of messages") {
    const auto [latency, bandwidth] = line_through({{8, 10.008e-6}, {1000, 50e-6}, {1e6, 1010e-6}});
    CHECK(latency == doctest::Approx(10e-6));
    CHECK(bandwidth == doctest::Approx(1e9));
    CHECK(line_through({{1000, 1e-6}, {3000, 4e-6}}).first == 0);  // never negative
}
