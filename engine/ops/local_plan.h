// SPDX-License-Identifier: MIT
// Tables for local_lambda, which list the keys that each query row sees at a distance of at most `reach` positions. If
// QuerySegment::along is true, positions are counted from the start of the document. Otherwise they are counted from
// the start of the row's own segment, and keys of other segments are left out.
#pragma once
#include <vector>

#include "engine/base/error.h"
#include "engine/ops/table.h"
#include "engine/ops/visible.h"

namespace masquerade {

// Returns a table (rows, W), W = 2 reach + 1. Entry (row, o) is the key at distance o - reach from the query row. Row r
// of key tensor s is stored as the number 4 r + s; -1 means that the query row sees no key at this distance.
inline std::vector<int> near_keys(const SegmentGraph& graph, int rows, int reach) {
    const int W = 2 * reach + 1;
    std::vector<int> near(std::int64_t(rows) * W, -1);
    for (QuerySegment q : graph.queries) {
        if (has_pattern(q)) throw Error("local_lambda: the mask has a window already");
        if (q.begin < 0 || q.end > rows) throw Error("local_lambda: query rows up to ", q.end, " of ", rows);
        q.window = reach, q.dilation = 1, q.stride = q.globals = 0, q.window_all = false;
        for (int row = q.begin; row < q.end; row++)
            for (int i = q.sees_begin; i < q.sees_end; i++) {
                const int k = graph.sees[i];
                if (!has_pattern(q, k)) continue;
                const KeySegment& key = graph.keys[k];
                const Places at = places_of(graph, q, row, k);
                each_run(graph, q, row, k, [&](int begin, int end) {
                    for (int j = begin; j < end; j++)
                        near[row * W + at.first_key + j - key.begin - at.middle + reach] = 4 * j + key.source;
                });
            }
    }
    return near;
}

// The inverse of near_keys(): lists, for each key, the entries of `near` that contain the key. Keys are numbered
// across all sources, one source after another. The result consists of the array `first` (keys + 1), then the list of
// entries, each as an index of `near`. Entries [first[k], first[k+1]) of the list belong to key k.
inline std::vector<int> queries_near(const std::vector<int>& near, const Views& keys) {
    std::vector<int> base = {0}, at;
    for (int s = 0; s < keys.count; s++) base.push_back(base.back() + int(keys[s].rows()));
    at.assign(base.back() + 1, 0);
    const auto place = [&](int key) { return base[key & 3] + (key >> 2); };
    for (int key : near)
        if (key >= 0) at[place(key) + 1]++;
    for (std::size_t k = 1; k < at.size(); k++) at[k] += at[k - 1];
    std::vector<int> next(at.begin(), at.end() - 1), found(at.back());
    for (std::size_t i = 0; i < near.size(); i++)
        if (near[i] >= 0) found[next[place(near[i])]++] = int(i);
    at.insert(at.end(), found.begin(), found.end());
    return at;
}

}  // namespace masquerade
