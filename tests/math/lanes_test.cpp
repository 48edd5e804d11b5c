// SPDX-License-Identifier: MIT
// Tests the functions of lanes.h on one lane: a sum is computed in the documented order, and store() stores or adds,
// for any length.
#include "engine/math/lanes.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "engine/base/random.h"

using namespace masquerade;

namespace {

std::vector<float> numbers(int n) {
    Sequence random(1, "lanes");
    std::vector<float> x(static_cast<std::size_t>(n));
    for (float& each : x) each = std::ldexp(random.uniform() - 0.5f, int(random.below(30)));
    return x;
}

// Computes a sum in the order that the comment of sum() describes. The compiler cannot use vectors, because the numbers
// are volatile.
float sum_by_hand(const std::vector<float>& x) {
    volatile float part[16] = {};
    for (std::size_t i = 0; i < x.size(); i++) part[i % 16] = part[i % 16] + x[i];
    for (int half = 8; half > 0; half /= 2)
        for (int k = 0; k < half; k++) part[k] = part[k] + part[k + half];
    return part[0];
}

}  // namespace

TEST_CASE("lanes: a sum has the order that is written down, alone and beside another") {
    for (int n : {0, 1, 15, 16, 17, 31, 32, 100, 768, 1000}) {
        CAPTURE(n);
        const std::vector<float> x = numbers(n);
        auto term = [&](int i) { return x[std::size_t(i)]; };
        CHECK(sum(OneLane{}, n, term) == sum_by_hand(x));
        Two<float> both = sums(OneLane{}, n, term, [&](int i) { return 2 * x[std::size_t(i)]; });
        CHECK(both.first == sum_by_hand(x));
        CHECK(both.second == 2 * sum_by_hand(x));
    }
}

TEST_CASE("lanes: store stores or adds, nothing before and nothing after") {
    for (int n : {0, 1, 31, 63, 64, 65, 130}) {
        CAPTURE(n);
        std::vector<float> x = numbers(n);
        if (n > 0) x[0] = NAN;
        auto value = [&](int i) { return x[std::size_t(i)]; };
        for (bool add : {false, true}) {
            std::vector<float> to(std::size_t(n) + 2, 3.f);
            std::vector<bfloat16> half(std::size_t(n) + 2, bfloat16(3.f)), copied = half;
            store(OneLane{}, n, to.data() + 1, add, value);
            store(OneLane{}, n, half.data() + 1, add, value);
            store(OneLane{}, n, copied.data() + 1, add, [&](int i) { return bfloat16(x[std::size_t(i)]); });
            int different = to.front() != 3 || to.back() != 3 || float(half.front()) != 3 || float(half.back()) != 3 ||
                            float(copied.front()) != 3 || float(copied.back()) != 3;
            for (int i = 0; i < n; i++) {
                const float given = x[std::size_t(i)], expected = add ? 3 + given : given;
                const float rounded = float(bfloat16(given)), from_half = add ? 3 + rounded : rounded;
                auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
                different += !same(to[std::size_t(i) + 1], expected);
                different += !same(float(half[std::size_t(i) + 1]), float(bfloat16(expected)));
                different += !same(float(copied[std::size_t(i) + 1]), float(bfloat16(from_half)));
            }
            CHECK(different == 0);
        }
    }
}

TEST_CASE("lanes: the largest of a row; one NaN anywhere makes it NaN") {
    std::vector<float> x = {-3, 5, -1, 4};
    auto largest = [&] { return top(OneLane{}, int(x.size()), [&](int i) { return x[std::size_t(i)]; }); };
    CHECK(largest() == 5);
    for (std::size_t i = 0; i < x.size(); i++) {
        const float before = x[i];
        x[i] = NAN;
        CHECK(std::isnan(largest()));
        x[i] = before;
    }
    x.clear();
    CHECK(largest() == -INFINITY);
}
