// SPDX-License-Identifier: MIT
#include "tools/bench/attention.h"

#include <cmath>

#include "tests/cuda/fake_device.h"

using namespace masquerade;

TEST_CASE("attention work: what is said to be computed is, on either device") {
    constexpr int length = 6, half = 3, heads = 2, D = 8, C = heads * D;
    auto number = [](int i, int salt) { return ((37 * i + 11 * salt) % 97) / 48.0 - 1; };
    const std::pair<const char*, int> masks[] = {{"full", 36}, {"causal", 21}, {"prefix", 9 + 9 + 6}};
    for (const auto& [name, pairs] : masks) {
        const std::string mask = name;
        INFO(mask);
        auto sees = [&](int q, int k) {
            if (mask == "full") return true;
            return k <= q || (mask == "prefix" && k < half);
        };
        double sum = 0;  // the sum of |y|
        for (int b = 0; b < 2; b++)
            for (int h = 0; h < heads; h++)
                for (int q = 0; q < length; q++) {
                    double total = 0, y[D] = {};
                    for (int k = 0; k < length; k++) {
                        const int qi = (b * length + q) * C + h * D, ki = (b * length + k) * C + h * D;
                        double score = 0;
                        for (int d = 0; d < D; d++) score += number(qi + d, 0) * number(ki + d, 1);
                        const double p = sees(q, k) ? std::exp(score / std::sqrt(double(D))) : 0;
                        total += p;
                        for (int d = 0; d < D; d++) y[d] += p * number(ki + d, 2);
                    }
                    for (double each : y) sum += std::fabs(each / total);
                }
        FakeDevice fake;
        double gradients[2];
        for (Device device : {Device::cpu, Device::cuda}) {
            const AttentionWork work({mask, 2, length, heads, D, DType::f32}, device);
            work.forward();
            work.backward();
            CHECK(mean_size(work.y) == doctest::Approx(sum / (2 * length * C)).epsilon(1e-5));
            CHECK(work.product_work == 2.0 * pairs * C);
            gradients[int(device)] = mean_size(work.dq);
        }
        CHECK(gradients[0] > 0);
        CHECK(gradients[1] == gradients[0]);
    }
}
