// SPDX-License-Identifier: MIT
// Tests the definition of attention against a dense softmax and against the complex step. Also tests the share of keys
// that dropout drops, and refusals.
#include "tests/ops/attention_calls.h"

using namespace masquerade;
using namespace masquerade::attention_calls;

TEST_CASE("attention: each_run finds what visible() says, in order") {
    Sequence random(1, "runs");
    int windows = 0, blocks = 0, texts = 0;
    for (int round = 0; round < 300; round++) {
        Layout layout = random_layout(random, 2, 14);
        const SegmentGraph& graph = layout.graph;
        for (const QuerySegment& q : graph.queries) {
            windows += q.window >= 0, blocks += q.block > 0, texts += has_pattern(q) && q.along;
            for (int row = q.begin; row < q.end; row++)
                for (int v = q.sees_begin; v < q.sees_end; v++) {
                    const KeySegment& key = graph.keys[graph.sees[v]];
                    std::vector<int> asked, found;
                    for (int j = key.begin; j < key.end; j++)
                        if (visible(graph, q, row, graph.sees[v], j)) asked.push_back(j);
                    each_run(graph, q, row, graph.sees[v], [&](int begin, int end) {
                        CHECK(begin < end);
                        for (int j = begin; j < end; j++) found.push_back(j);
                    });
                    CHECK(asked == found);
                    if (sees_whole(q, graph.sees[v])) CHECK(int(asked.size()) == key.end - key.begin);
                }
        }
    }
    CHECK(std::min({windows, blocks, texts}) > 100);
}

TEST_CASE("attention: a row that stands before the first block sees no block of another segment") {
    QuerySegment q;
    q.block = 4;
    for (int middle = -9; middle < 12; middle++)
        for (int before = 0; before < 3; before++)
            for (int j = 0; j < 16; j++) {
                q.block_before = before;
                // Counts blocks from a block far to the left, so that numbers are not negative.
                const int own = (middle + 400) / 4 - 100, of_key = j / 4;
                INFO("row ", middle, ", key ", j, ", ", before, " blocks before");
                CHECK(pattern_allows(q, {3, 0, middle}, j) == (of_key <= own && of_key >= own - before));
            }
}

TEST_CASE("attention: the definition equals a dense softmax") {
    Sequence random(2, "dense");
    for (int round = 0; round < 40; round++) {
        Layout layout = random_layout(random, 3, 9);
        const int H = 2, D = 3, C = H * D;
        Call<double> call = random_call(random, layout, H, D);
        call.forward();
        Array<double> y(call.q.shape, "y", 0), lse({layout.queries, H}, "lse", -INFINITY);
        for (const QuerySegment& segment : layout.graph.queries)
            for (int i = segment.begin; i < segment.end; i++)
                for (int h = 0; h < H; h++) {
                    std::vector<Seen> seen = seen_by(layout.graph, segment, i);
                    std::vector<double> e;
                    double total = 0;
                    for (const Seen& key : seen) {
                        const Array<double>& kv = call.kv[layout.graph.keys[key.key].source];
                        double s = 0;
                        for (int d = 0; d < D; d++) s += call.q(i, h * D + d) * kv(key.row, h * D + d);
                        e.push_back(std::exp(s / std::sqrt(double(D))));
                        total += e.back();
                    }
                    for (std::size_t j = 0; j < seen.size(); j++)
                        for (int d = 0; d < D; d++)
                            y(i, h * D + d) +=
                                e[j] / total *
                                call.kv[layout.graph.keys[seen[j].key].source](seen[j].row, C + h * D + d);
                    if (!seen.empty()) lse(i, h) = std::log(total);
                }
        CHECK(difference(call.y, y) <= 1e-14);
        CHECK(difference(call.lse, lse) <= 1e-14);
    }
}

TEST_CASE("attention: the definition's gradients by complex step") {
    Sequence random(3, "step");
    for (double dropout : {0.0, 0.3})
        for (int round = 0; round < 6; round++) {
            Layout layout = random_layout(random, 2, 5);
            Call<double> call = random_call(random, layout, 2, 3, dropout);
            call.forward();
            call.backward();
            Call<complex> step = as<complex>(call);
            auto check = [&](Array<complex>& x, const Array<double>& dx) {
                double worst = 0, top = 1e-3;  // if each row sees only one key, dq is 0 everywhere
                for (std::int64_t i = 0; i < x.count(); i++) {
                    const double h = 1e-100;
                    x.data()[i] += complex(0, h);
                    step.forward();
                    double slope = 0;
                    for (std::int64_t n = 0; n < step.y.count(); n++)
                        slope += step.y.data()[n].imag() / h * call.dy.data()[n];
                    x.data()[i] = x.data()[i].real();
                    double d = std::fabs(slope - dx.data()[i]);
                    worst = d > worst || d != d ? d : worst;
                    top = std::fmax(top, std::fabs(slope));
                }
                CAPTURE(top);
                CHECK(worst / top <= 1e-12);
            };
            check(step.q, call.dq);
            check(step.kv[0], call.dkv[0]);
            check(step.kv[1], call.dkv[1]);
        }
}

TEST_CASE("attention: dropout takes the share it should, and the rest grows") {
    Sequence random(10, "dropout");
    const int n = 64;
    Layout layout;
    layout.queries = layout.keys[0] = n;
    layout.graph.keys = {{0, 0, n, 0}};
    layout.graph.sees = {0};
    QuerySegment q;
    q.end = n;
    q.sees_end = 1;
    q.self = 0;
    layout.graph.queries = {q};
    layout.graph.documents = 1;
    Call<double> call = random_call(random, layout, 2, 8, 0.25);
    for (int i = 0; i < n; i++) call.document[i] = 3, call.position[i] = i;
    for (std::int64_t i = 0; i < call.kv[0].count(); i++)
        call.kv[0].data()[i] = 1;  // all values are 1, so p = 1/n and y = kept / n / 0.75
    call.forward();
    double kept = 0;
    for (std::int64_t i = 0; i < call.y.count(); i++) kept += call.y.data()[i] * 0.75 / double(call.y.count());
    CHECK(std::fabs(kept - 0.75) <= 0.02);  // 4 standard deviations for 8,192 draws
    CHECK(call.y(0, 0) != call.y(0, 8));    // the heads drop different keys
    CHECK(call.y(0, 0) != call.y(1, 0));
}

TEST_CASE("attention: refuses what it cannot do") {
    Sequence random(11, "errors");
    Layout layout;
    layout.queries = layout.keys[0] = 8;
    layout.graph.keys = {{0, 0, 4, 0}, {0, 4, 8, 0}};
    layout.graph.sees = {0, 1};
    QuerySegment a, b;
    a.end = 4;
    a.sees_end = 1;
    a.self = 0;
    b.begin = 4;
    b.end = 8;
    b.document = 1;
    b.sees_begin = 1;
    b.sees_end = 2;
    b.self = 1;
    layout.graph.queries = {a, b};
    layout.graph.documents = 2;
    const Call<float> good = as<float>(random_call(random, layout, 2, 4));
    Call<float> call = good;
    call.forward();
    CHECK_NOTHROW(call.backward());

    auto refused = [&](auto spoil) {
        Call<float> bad = good;
        spoil(bad);
        CHECK_THROWS_AS(bad.forward(), Error);
    };
    refused([](auto& c) { c.rule.heads = 3; });
    refused([](auto& c) { c.rule.dropout = 1; });
    refused([](auto& c) { c.layout.graph.queries[1].begin = 3; });  // two segments contain the same row
    refused([](auto& c) { c.layout.graph.queries[1].end = 9; });
    refused([](auto& c) { c.layout.graph.keys[1].end = 9; });
    refused([](auto& c) { c.layout.graph.keys[1].source = 2; });
    refused([](auto& c) { c.layout.graph.sees[1] = 2; });
    // A key segment is seen twice.
    refused([](auto& c) { c.layout.graph.sees[1] = 0, c.layout.graph.queries[1].sees_begin = 0; });
    refused([](auto& c) {
        c.layout.graph.queries[0].rule = Rule::rank;
        c.layout.graph.key_rank.clear();
    });
    refused([](auto& c) { c.layout.graph.queries[0].rule = Rule::bits; });
    refused([](auto& c) { c.kv[1] = {{0, 12}, "kv"}; });
    Call<float> thirds = as<float>(random_call(random, layout, 4, 2));
    thirds.kv[0] = {{8, 12}, "kv"};
    CHECK_THROWS_WITH_AS(thirds.forward(), doctest::Contains("as many heads or a divisor"), Error);

    // In decoding, documents may share keys. With a backward, they may not.
    Call<float> shared = good;
    shared.layout.graph.sees[1] = 0;
    shared.layout.graph.queries[1].self = 0;
    CHECK_NOTHROW(shared.forward());
    CHECK_THROWS_AS(shared.backward(), Error);
    Call<float> overlapping = good;
    overlapping.layout.graph.keys[1].begin = 3;
    CHECK_NOTHROW(overlapping.forward());
    CHECK_THROWS_AS(overlapping.backward(), Error);
}
