// SPDX-License-Identifier: MIT
// Tests for every named mask that there is no leak. If a row that a query may not see contains NaN or other numbers,
// the output of the query keeps its bits. If a row that the query may see changes, the output changes.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "engine/base/random.h"
#include "engine/ops/ops.h"
#include "engine/ops/visible.h"
#include "models/masks/mask.h"

using namespace masquerade;

namespace {

constexpr int C = 8, H = 2;

struct NumbersOfRows {
    std::vector<std::vector<float>> tensors;  // q, then the key/value sources
    std::vector<int> rows;
};

View view_of(std::vector<float>& x, int columns) {
    return View{x.data(), DType::f32, Device::cpu, {std::int64_t(x.size()) / columns, columns}, "test"};
}

std::vector<float> attend(const SegmentGraph& graph, NumbersOfRows& n) {
    std::vector<float> y(n.tensors[0].size()), lse(n.tensors[0].size() / C * H);
    Views kv;
    for (std::size_t s = 1; s < n.tensors.size(); s++) kv.add(view_of(n.tensors[s], 2 * C));
    AttentionRule rule;
    rule.heads = H;
    attention_forward(view_of(n.tensors[0], C), kv, graph, rule, view_of(y, C), view_of(lse, H));
    return y;
}

bool sees(const SegmentGraph& graph, int query_row, int source, int key_row) {
    for (const QuerySegment& q : graph.queries) {
        if (query_row < q.begin || query_row >= q.end) continue;
        for (int i = q.sees_begin; i < q.sees_end; i++) {
            const KeySegment& k = graph.keys[std::size_t(graph.sees[std::size_t(i)])];
            if (k.source == source && key_row >= k.begin && key_row < k.end &&
                visible(graph, q, query_row, graph.sees[std::size_t(i)], key_row))
                return true;
        }
    }
    return false;
}

}  // namespace

TEST_CASE("mask: nothing leaks past any named mask") {
    const Documents documents = {{4, 5}, {3, 2}, {6, 6}};
    Sequence random(3, "leak");
    for (const NamedMask& mask : named_masks()) {
        CAPTURE(std::string(mask.name));
        SegmentGraph graph = make_mask(mask.name, documents, example_details(documents));
        NumbersOfRows n;
        int queries = 0, sources = 1;
        for (const QuerySegment& q : graph.queries) queries = std::max(queries, q.end);
        for (const KeySegment& k : graph.keys) sources = std::max(sources, k.source + 1);
        n.rows.assign(std::size_t(sources), 0);
        for (const KeySegment& k : graph.keys)
            n.rows[std::size_t(k.source)] = std::max(n.rows[std::size_t(k.source)], k.end);
        if (mask.rows == MaskRows::tokens) n.rows[0] = rows_of(documents);  // some of these rows may be no keys
        n.tensors.emplace_back(std::size_t(queries * C));
        for (int rows : n.rows) n.tensors.emplace_back(std::size_t(rows * 2 * C));
        for (auto& tensor : n.tensors)
            for (float& x : tensor) x = 2 * random.uniform() - 1;
        const std::vector<float> before = attend(graph, n);
        int forbidden = 0, allowed = 0, leaked = 0, unmoved = 0;
        for (int source = 0; source < sources; source++)
            for (int row = 0; row < n.rows[std::size_t(source)]; row++) {
                float* key = n.tensors[std::size_t(source) + 1].data() + row * 2 * C;
                std::vector<float> kept(key, key + 2 * C);
                for (float poison : {std::nanf(""), 3.f}) {
                    std::fill_n(key, 2 * C, poison);
                    std::vector<float> after = attend(graph, n);
                    for (int i = 0; i < queries; i++) {
                        bool same = std::memcmp(&before[std::size_t(i * C)], &after[std::size_t(i * C)],
                                                C * sizeof(float)) == 0;
                        bool may = sees(graph, i, source, row);
                        (may ? allowed : forbidden)++;
                        leaked += !may && !same;
                        unmoved += may && same;
                    }
                }
                std::copy(kept.begin(), kept.end(), key);
            }
        CHECK(leaked == 0);
        CHECK(unmoved == 0);
        CHECK(forbidden > 0);
        CHECK(allowed > 0);
    }
}
