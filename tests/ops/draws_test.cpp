// SPDX-License-Identifier: MIT
// Tests that random words that are drawn in vectors are those of Stream::at, and that dropout follows them for any
// length of a row.
#include "engine/ops/cpu/draws.h"

#include <doctest/doctest.h>

#include <vector>

#include "engine/ops/table.h"
#include "tests/ops/values.h"

using namespace masquerade;

TEST_CASE("draws: philox in every lane gives the words of the one of base/random.h") {
    const std::uint32_t key0 = 0xa4093822u, key1 = 0x299f31d0u;
    Sequence random(1, "counters");
    int different = 0;
    for (int round = 0; round < 50; round++) {
        cpu::Words words[4];
        cpu::LowHalves halves[4];
        constexpr int lanes = 2 * cpu::counters;
        Four counter[lanes];
        for (int i = 0; i < lanes; i++)
            for (int k = 0; k < 4; k++) {
                std::uint32_t word = round == 0 ? 0xffffffffu : random.bits();
                counter[i].v[k] = word;
                words[k][i] = word;
                // The upper half must not matter.
                if (i < cpu::counters) halves[k][i] = word | std::uint64_t(random.bits()) << 32;
            }
        cpu::philox(words, key0, key1);
        cpu::philox(halves, key0, key1);
        for (int i = 0; i < lanes; i++) {
            Four expected = philox(counter[i], key0, key1);
            for (int k = 0; k < 4; k++) {
                different += words[k][i] != expected[k];
                if (i < cpu::counters) different += std::uint32_t(halves[k][i]) != expected[k];
            }
        }
    }
    CHECK(different == 0);
}

TEST_CASE("draws: the words of a row of any length, each channel once and in order") {
    Stream stream = make_stream(3, "row", 7);
    for (int n : {0, 1, 3, 4, 31, 32, 33, 255, 256, 257, 600}) {
        CAPTURE(n);
        int next = 0, different = 0;
        cpu::each_draw(OneLane{}, stream, 1 << 20, 511, n,
                       [&](OneLane, int begin, int count, const std::uint32_t* words) {
                           different += begin != next;
                           for (int i = begin; i < begin + count; i++)
                               different += words[i - begin] != stream.at(1 << 20, 511, std::uint32_t(i / 4))[i % 4];
                           next = begin + count;
                       });
        CHECK(next == n);
        CHECK(different == 0);
    }
}

TEST_CASE("dropout: keeps and scales what its random words say; a dropped NaN is gone, a kept one is not") {
    const int N = 5;
    const float rate = 0.3f;
    const auto threshold = std::uint32_t(double(rate) * 4294967296.0);
    std::vector<int> document = {7, 7, 0, 1 << 20, 7}, position = {0, 1, 511, 3, 0};
    DropoutRule rule{rate, make_stream(5, "dropout", 2)};
    for (DType type : {DType::f32, DType::bf16, DType::f64, DType::c128})
        for (int C : {1, 2, 65, 300}) {
            Values x = Values::random(type, {N, C}, 1), y(type, {N, C}, 7);
            for (int i = 0; i < N * C; i += 11) x.set(i, NAN);
            cpu::dropout_forward(x.view(), {{document.data(), N}, {position.data(), N}}, rule, y.view());
            int different = 0, dropped = 0;
            for (int i = 0; i < N * C; i++) {
                Four words = rule.stream.at(std::uint32_t(document[std::size_t(i / C)]),
                                            std::uint32_t(position[std::size_t(i / C)]), std::uint32_t(i % C / 4));
                bool keep = words[i % C % 4] >= threshold;
                double expected = keep ? x[i] / (1 - double(rate)) : 0, near = type == DType::bf16 ? 4e-3 : 1e-6;
                if (x[i] != x[i] && keep)
                    different += y[i] == y[i];
                else
                    different += !(std::fabs(y[i] - expected) <= near);
                dropped += !keep;
            }
            CHECK(different == 0);
            if (C == 300) CHECK(std::abs(dropped - 450) < 100);
        }
}
