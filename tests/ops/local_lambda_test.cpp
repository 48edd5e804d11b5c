// SPDX-License-Identifier: MIT
// Compares the local positional lambda with its formula, for every pair that a mask permits, and tests refusals.
#include "engine/ops/local_plan.h"
#include "tests/ops/attention_calls.h"

using namespace masquerade;
using namespace masquerade::attention_calls;

namespace {
constexpr int H = 2, D = 3, C = H * D;
}

TEST_CASE("local_lambda: equals its formula under random masks, 1e-12") {
    Sequence random(5, "local");
    int near = 0, far = 0;
    for (int round = 0; round < 300; round++) {
        const int reach = round % 4;
        Layout layout = random_layout(random, 3, 9);
        for (QuerySegment& q : layout.graph.queries) q.window = -1, q.block = 0, q.along = false;
        const auto numbers = [&](int rows) {
            Array<double> a({rows, C}, "numbers", 0);
            for (std::int64_t i = 0; i < a.count(); i++) a.data()[i] = random.uniform() - 0.5;
            return a;
        };
        Array<double> q = numbers(layout.queries), e = numbers(2 * reach + 1),
                      v[2] = {numbers(layout.keys[0]), numbers(layout.keys[1])}, y({layout.queries, C}, "y", 7);
        cpu::local_lambda_forward(q.view(), e.view(), {v[0].view(), v[1].view()}, layout.graph, H, y.view());
        CHECK(y.guarded());
        std::vector<double> expected(std::size_t(layout.queries * C), 0.0);
        for (const QuerySegment& s : layout.graph.queries)
            for (int row = s.begin; row < s.end; row++)
                for (const Seen& seen : seen_by(layout.graph, s, row)) {
                    const KeySegment& key = layout.graph.keys[std::size_t(seen.key)];
                    if (seen.key != s.self) continue;
                    const int o = seen.row - key.begin - (s.offset + row - s.begin);
                    (std::abs(o) <= reach ? near : far)++;
                    for (int h = 0; h < H && std::abs(o) <= reach; h++) {
                        double w = 0;
                        for (int d = h * D; d < (h + 1) * D; d++) w += e(o + reach, d) * q(row, d);
                        for (int d = h * D; d < (h + 1) * D; d++)
                            expected[std::size_t(row * C + d)] += w * v[key.source](seen.row, d);
                    }
                }
        double worst = 0;
        for (std::int64_t i = 0; i < y.count(); i++)
            worst = std::max(worst, std::abs(y.data()[i] - expected[std::size_t(i)]));
        CHECK(worst < 1e-12);
    }
    CHECK(near > 1000);
    CHECK(far > 1000);
}

TEST_CASE("local_lambda: a mask with a window, and an even number of distances, are refused") {
    Sequence random(6, "refused");
    Layout layout = random_layout(random, 2, 5);
    Array<double> q({layout.queries, C}, "q", 0), e({3, C}, "e", 0), even({4, C}, "e", 0),
        a({layout.keys[0], C}, "v", 0), b({layout.keys[1], C}, "v", 0);
    const auto run = [&](Array<double>& by) {
        cpu::local_lambda_forward(q.view(), by.view(), {a.view(), b.view()}, layout.graph, H, q.view());
    };
    for (QuerySegment& s : layout.graph.queries) s.window = -1, s.block = 0, s.along = false;
    CHECK_NOTHROW(run(e));
    CHECK_THROWS_WITH_AS(run(even), doctest::Contains("expected 2 reach + 1 rows"), Error);
    layout.graph.queries[0].window = 1;
    CHECK_THROWS_WITH_AS(run(e), doctest::Contains("has a window already"), Error);
}
