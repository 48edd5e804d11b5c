// SPDX-License-Identifier: MIT
// Compares the fast forms of attention with the definition, on random segment graphs.
#include "tests/ops/attention_calls.h"

#include "engine/ops/cpu/attention_plan.h"

using namespace masquerade;
using namespace masquerade::attention_calls;

TEST_CASE("attention: float and bf16 against the definition, forward and every gradient") {
    Sequence random(4, "fast");
    auto compare = [&](const Layout& layout, int heads, int D, double dropout) {
        CAPTURE(D);
        CAPTURE(dropout);
        Call<double> call = random_call(random, layout, heads, D, dropout);
        call.forward();
        call.backward();
        auto against = [&](auto fast, double tolerance) {
            fast.forward();
            fast.backward();
            CHECK(difference(fast.y, call.y) <= tolerance);
            CHECK(difference(fast.lse, call.lse) <= std::fmin(tolerance, 1e-5));
            CHECK(difference(fast.dq, call.dq) <= tolerance);
            CHECK(difference(fast.dkv[0], call.dkv[0]) <= tolerance);
            CHECK(difference(fast.dkv[1], call.dkv[1]) <= tolerance);
        };
        against(as<float>(call), 1e-5);
        against(as<bfloat16>(call), 1e-2);
    };
    for (double dropout : {0.0, 0.2})
        for (int round = 0; round < 30; round++) {
            const int sizes[] = {1, 5, 8, 16, 31, 32, 33, 64, 65, 130};
            compare(random_layout(random, 3, round % 3 == 0 ? 70 : 20), 1 + round % 3, sizes[round % 10], dropout);
        }
    for (int n : {0, 1, 31, 32, 33, 63, 65, 129})
        for (Rule rule : {Rule::full, Rule::causal, Rule::strict_causal, Rule::anticausal, Rule::none}) {
            Layout layout;
            layout.queries = layout.keys[0] = n;
            layout.graph.keys = {{0, 0, n, 0}};
            layout.graph.sees = {0};
            QuerySegment q;
            q.end = n;
            q.sees_end = 1;
            q.self = 0;
            q.rule = rule;
            layout.graph.queries = {q};
            layout.graph.documents = 1;
            compare(layout, 2, 16, 0);
        }
}

TEST_CASE("attention: a gradient is stored or added") {
    Sequence random(5, "add");
    for (int round = 0; round < 10; round++) {
        Call<float> call = as<float>(random_call(random, random_layout(random, 3, 20), 2, 8));
        call.forward();
        call.backward();
        const Array<float> dq = call.dq, dkv[2] = {call.dkv[0], call.dkv[1]};
        call.dq = {call.q.shape, "dq", 0.5};
        for (int s = 0; s < 2; s++) call.dkv[s] = {call.kv[s].shape, "dkv", 0.5};
        call.add_backward(true);
        auto check = [](const Array<float>& added, const Array<float>& stored) {
            float worst = 0;
            for (std::int64_t i = 0; i < stored.count(); i++) {
                float d = std::fabs(added.data()[i] - (stored.data()[i] + 0.5f));
                worst = d > worst || d != d ? d : worst;
            }
            CHECK(worst <= 1e-5f);
        };
        check(call.dq, dq);
        check(call.dkv[0], dkv[0]);
        check(call.dkv[1], dkv[1]);
    }
}

TEST_CASE("attention: what a query does not see does not reach it, and its gradient does not reach that") {
    Sequence random(6, "leak");
    int checked = 0;
    for (int round = 0; round < 40; round++) {
        Call<float> call = as<float>(random_call(random, random_layout(random, 2, 24), 2, 16));
        const SegmentGraph& graph = call.layout.graph;
        if (graph.keys.empty()) continue;
        call.forward();
        call.backward();
        Array<float> y = call.y, lse = call.lse, dq = call.dq;
        int key = int(random.below(std::uint32_t(graph.keys.size())));
        if (graph.keys[key].begin == graph.keys[key].end) continue;
        int row = graph.keys[key].begin, source = graph.keys[key].source;
        for (int c = 0; c < 4 * 16; c++) call.kv[source](row, c) = c % 2 ? NAN : INFINITY;
        call.forward();
        call.backward();
        for (const QuerySegment& q : graph.queries)
            for (int i = q.begin; i < q.end; i++) {
                bool sees = false;
                for (const Seen& s : seen_by(graph, q, i)) sees |= graph.keys[s.key].source == source && s.row == row;
                bool same = equal_rows(call.y, i, y, i) && equal_rows(call.lse, i, lse, i);
                CHECK(same == !sees);
                CHECK(equal_rows(call.dq, i, dq, i) == !sees);
                checked += !sees;
            }
        // The reverse: NaN in dy of one query reaches the gradients of exactly the keys that it sees.
        Call<float> back = as<float>(random_call(random, call.layout, 2, 16));
        if (graph.queries[0].begin == graph.queries[0].end) continue;
        back.forward();
        int bad = graph.queries[0].begin;
        for (int c = 0; c < 32; c++) back.dy(bad, c) = NAN;
        back.backward();
        std::vector<Seen> seen = seen_by(graph, graph.queries[0], bad);
        for (int s = 0; s < 2; s++)
            for (int j = 0; j < call.layout.keys[s]; j++) {
                bool sees = false;
                for (const Seen& k : seen) sees |= graph.keys[k.key].source == s && k.row == j;
                CHECK(std::isnan(back.dkv[s](j, 40)) == sees);
            }
    }
    CHECK(checked > 500);
}

TEST_CASE("attention: the plan of a document says what visible() says, in order") {
    Sequence random(12, "plan");
    for (int round = 0; round < 200; round++) {
        const Layout layout = random_layout(random, 3, round % 2 ? 40 : 9);
        const SegmentGraph& graph = layout.graph;
        Call<float> call = as<float>(random_call(random, layout, 1, 1));
        const Views kv{call.kv[0].view(), call.kv[1].view()};
        const View q = call.q.view(), lse = q;
        const cpu::AttentionCall checked("plan", q, kv, graph, call.rule, lse);
        for (const cpu::DocumentRange& document : checked.documents) {
            const cpu::DocumentPlan& plan = cpu::plan_document(checked, document);
            std::vector<Seen> packed;
            for (int key : plan.key_segments)
                for (int row = graph.keys[key].begin; row < graph.keys[key].end; row++) packed.push_back({key, row});
            CHECK(int(packed.size()) == plan.rows);
            std::size_t next = 0;  // index of the block with the next row
            for (int s = document.first; s < document.last; s++) {
                const QuerySegment& segment = graph.queries[s];
                for (int row = segment.begin; row < segment.end;) {
                    REQUIRE(next < plan.blocks.size());
                    const cpu::QueryBlock& block = plan.blocks[next++];
                    CHECK(block.row == row);
                    REQUIRE((block.count >= 1 && block.row + block.count <= segment.end));
                    std::vector<std::vector<Seen>> seen(std::size_t(block.count));
                    unsigned seeing = 0;
                    int visits = 0;
                    for (int r = block.first_run; r < block.last_run; r++)
                        for (int k = 0; k < plan.runs[r].count; k++, visits++)
                            for (int i = 0; i < block.count; i++)
                                if (plan.runs[r].seen_by >> i & 1) {
                                    seen[i].push_back(packed[plan.runs[r].key + k]);
                                    seeing |= 1u << i;
                                }
                    CHECK(visits == block.visits);
                    CHECK(visits <= plan.most_visits);
                    CHECK(seeing == block.seeing);
                    CHECK(block.everyone == (1u << block.count) - 1);
                    for (int i = 0; i < block.count; i++) {
                        const std::vector<Seen> asked = seen_by(graph, segment, row + i);
                        bool equal = asked.size() == seen[i].size();
                        for (std::size_t j = 0; equal && j < asked.size(); j++)
                            equal = asked[j].key == seen[i][j].key && asked[j].row == seen[i][j].row;
                        CHECK(equal);
                    }
                    row += block.count;
                }
            }
            CHECK(next == plan.blocks.size());
        }
    }
}

// The value of every key row is 0 except in one channel, which is different for each row. Therefore, y shows which keys
// were kept.
TEST_CASE("attention: dropout draws a number by stream, document, position, head and place of the key") {
    Sequence random(13, "draws");
    const int H = 3, D = 200;
    int kept_keys = 0, dropped_keys = 0;
    for (int round = 0; round < 40; round++) {
        const Layout layout = random_layout(random, 2, 24);
        REQUIRE(layout.keys[0] + layout.keys[1] <= D);
        Call<double> call = random_call(random, layout, H, D, 0.3);
        for (std::int64_t i = 0; i < call.q.count(); i++) call.q.data()[i] *= 0.01;
        auto channel_of = [&](int source, int row) { return source * layout.keys[0] + row; };
        for (int s = 0; s < 2; s++)
            for (int row = 0; row < layout.keys[s]; row++)
                for (int c = 0; c < H * D; c++) call.kv[s](row, H * D + c) = c % D == channel_of(s, row) ? 1 : 0;
        Call<float> fast = as<float>(call);
        fast.forward();
        const auto threshold = std::uint32_t(std::lround(double(fast.rule.dropout) * 65536));
        for (const QuerySegment& segment : layout.graph.queries)
            for (int i = segment.begin; i < segment.end; i++)
                for (int h = 0; h < H; h++) {
                    std::vector<int> kept(std::size_t(D), 0);
                    for (const Seen& key : seen_by(layout.graph, segment, i)) {
                        int number = key.row - layout.graph.keys[key.key].begin;
                        for (int v = segment.sees_begin; layout.graph.sees[v] != key.key; v++) {
                            const KeySegment& earlier = layout.graph.keys[layout.graph.sees[v]];
                            number += (earlier.end - earlier.begin + 7) / 8 * 8;
                        }
                        const Four four =
                            call.rule.stream.at(std::uint32_t(call.document[i]), std::uint32_t(call.position[i]),
                                                (std::uint32_t(h) << 20 | std::uint32_t(number)) / 8);
                        bool keeps = (four[number % 8 / 2] >> number % 2 * 16 & 0xffff) >= threshold;
                        kept[channel_of(layout.graph.keys[key.key].source, key.row)] += keeps;
                        (keeps ? kept_keys : dropped_keys)++;
                    }
                    int wrong = 0;
                    for (int d = 0; d < D; d++) wrong += (fast.y(i, h * D + d) > 0) != (kept[d] > 0);
                    CHECK(wrong == 0);
                }
    }
    CHECK(kept_keys > 10000);
    CHECK(dropped_keys > 5000);
}
