// SPDX-License-Identifier: MIT
// Tests promises about the bits of attention: results that must be equal, not only close.
#include "tests/ops/attention_calls.h"

using namespace masquerade;
using namespace masquerade::attention_calls;

TEST_CASE("attention: the same bits alone as in any batch, at any place, with any number of threads") {
    Sequence random(7, "bits");
    const int threads_before = threads();
    for (int round = 0; round < 20; round++) {
        Call<float> call = as<float>(random_call(random, random_layout(random, 4, 40), 3, 20, round % 2 ? 0.1 : 0));
        set_threads(1);
        call.forward();
        call.backward();
        for (int count : {2, 4}) {
            set_threads(count);
            Call<float> again = call;
            again.forward();
            again.backward();
            CHECK(again.y == call.y);
            CHECK(again.lse == call.lse);
            CHECK(again.dq == call.dq);
            CHECK(again.dkv[0] == call.dkv[0]);
            CHECK(again.dkv[1] == call.dkv[1]);
        }
        // The same document alone, moved down by three rows.
        Call<float> alone = call;
        SegmentGraph& graph = alone.layout.graph;
        auto lower = [](auto& array) {
            auto moved = std::decay_t<decltype(array)>({array.shape[0] + 3, array.shape[1]}, array.path, 0.25);
            std::memcpy(&moved(3, 0), array.data(), std::size_t(array.count()) * sizeof(float));
            array = moved;
        };
        lower(alone.q);
        lower(alone.dy);
        lower(alone.kv[0]);
        lower(alone.kv[1]);
        for (auto* ints : {&alone.document, &alone.position, &graph.query_rank, &graph.key_rank})
            ints->insert(ints->begin(), 3, 5);
        for (KeySegment& key : graph.keys) key.begin += 3, key.end += 3;
        std::vector<QuerySegment> kept;
        for (QuerySegment q : graph.queries)
            if (q.document == 1) q.begin += 3, q.end += 3, kept.push_back(q);
        graph.queries = kept;
        alone.forward();
        alone.backward();
        for (const QuerySegment& q : graph.queries) {
            for (int i = q.begin; i < q.end; i++) {
                CHECK(equal_rows(alone.y, i, call.y, i - 3));
                CHECK(equal_rows(alone.lse, i, call.lse, i - 3));
                CHECK(equal_rows(alone.dq, i, call.dq, i - 3));
            }
            for (int v = q.sees_begin; v < q.sees_end; v++) {
                const KeySegment& key = graph.keys[graph.sees[v]];
                for (int j = key.begin; j < key.end; j++)
                    CHECK(equal_rows(alone.dkv[key.source], j, call.dkv[key.source], j - 3));
            }
        }
    }
    set_threads(threads_before);
}

TEST_CASE("attention: a row decoded alone has the bits it has among all") {
    Sequence random(8, "decode");
    for (int round = 0; round < 20; round++) {
        Call<float> call = as<float>(random_call(random, random_layout(random, 2, 40), 2, 32, round % 2 ? 0.1 : 0));
        call.forward();
        Call<float> rows = call;  // every row is a segment of its own document
        SegmentGraph& graph = rows.layout.graph;
        graph.queries.clear();
        for (const QuerySegment& q : call.layout.graph.queries)
            for (int i = q.begin; i < q.end; i++) {
                QuerySegment one = q;
                one.begin = i;
                one.end = i + 1;
                one.offset = q.offset + i - q.begin;
                one.document = i;
                if (q.rule == Rule::bits)
                    one.bits_begin += (i - q.begin) * (graph.keys[q.self].end - graph.keys[q.self].begin);
                graph.queries.push_back(one);
            }
        rows.forward();
        CHECK(rows.y == call.y);
        CHECK(rows.lse == call.lse);
        // Each document has key segments of its own for the same rows, as the hypotheses of one source have.
        SegmentGraph own = graph;
        own.keys.clear(), own.sees.clear();
        for (QuerySegment& q : own.queries) {
            const int begin = q.sees_begin, end = q.sees_end, self = q.self;
            q.sees_begin = int(own.sees.size());
            for (int v = begin; v < end; v++) {
                if (graph.sees[v] == self) q.self = int(own.keys.size());
                own.see(graph.keys[graph.sees[v]]);
            }
            q.sees_end = int(own.sees.size());
        }
        graph = own;
        rows.forward();
        CHECK(rows.y == call.y);
        CHECK(rows.lse == call.lse);
    }
}

TEST_CASE("attention: documents with common keys have the bits that each has alone") {
    Sequence random(10, "common");
    for (bool common_first : {true, false}) {
        CAPTURE(common_first);
        Layout layout;
        layout.queries = 20, layout.keys[0] = 60;
        for (int i = 0; i < layout.queries; i++) {
            const KeySegment common{0, 40, 60}, own{0, 2 * i, 2 * i + 1 + i % 2};
            for (const KeySegment& key : {common_first ? common : own, common_first ? own : common})
                layout.graph.see(key);
            QuerySegment q;
            q.begin = i, q.end = i + 1, q.document = i;
            layout.graph.add(q);
        }
        layout.graph.documents = layout.queries;
        Call<float> all = as<float>(random_call(random, layout, 2, 32, 0.1));
        all.forward();
        for (int i = 0; i < layout.queries; i++) {
            Call<float> alone = all;
            alone.layout.graph.queries = {all.layout.graph.queries[i]};
            alone.forward();
            CHECK(equal_rows(alone.y, i, all.y, i));
            CHECK(equal_rows(alone.lse, i, all.lse, i));
        }
    }
}

TEST_CASE("attention: bits do not depend on keys that a window has passed") {
    Sequence random(9, "passed");
    const int n = 50, radius = 7;
    Layout whole;
    whole.queries = whole.keys[0] = n;
    whole.graph.keys = {{0, 0, n, 0}};
    whole.graph.sees = {0};
    whole.graph.documents = 1;
    QuerySegment q;
    q.end = n;
    q.sees_end = 1;
    q.self = 0;
    q.rule = Rule::causal;
    q.window = radius;
    whole.graph.queries = {q};
    Call<float> call = as<float>(random_call(random, whole, 2, 32));
    call.forward();
    for (int i = 0; i < n; i++) {
        Call<float> last = call;  // only row i, with only the keys that it sees
        int first = std::max(0, i - radius);
        last.layout.graph.keys = {{0, first, i + 1, 0}};
        QuerySegment& one = last.layout.graph.queries[0];
        one.begin = i;
        one.end = i + 1;
        one.offset = i - first;
        last.forward();
        CHECK(equal_rows(last.y, i, call.y, i));
        CHECK(equal_rows(last.lse, i, call.lse, i));
    }
}
