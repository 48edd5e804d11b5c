// SPDX-License-Identifier: MIT
// Compares masks in words that have windows and slices, in all combinations, with the definitions in
// models/masks/words.h.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "engine/ops/visible.h"
#include "models/masks/words.h"

using namespace masquerade;

namespace {

const Documents documents = {{7, 6}, {3, 5}, {1, 2}};

struct Near {
    const char* words;
    int radius, dilation, stride, globals;
    // i and j are places in the whole document or in their parts. of_own and of_key are the places in their parts.
    bool has(int i, int j, int of_own, int of_key) const {
        if (radius < 0) return true;
        const int away = std::abs(i - j);
        return (away <= radius * dilation && away % dilation == 0) || (stride > 0 && away % stride == 0) ||
               of_own < globals || of_key < globals;
    }
};
struct Slice {
    const char* words;
    int from, to;  // as in Python's slices; `to` = 99: to the end
    bool has(int place, int length) const {
        const int begin = from < 0 ? std::max(0, from + length) : from, end = to < 0 ? to + length : to;
        return place >= begin && place < end;
    }
};
struct RuleWord {
    const char* words;
    bool (*allows)(int i, int j);
};

}  // namespace

TEST_CASE("mask words: every rule, window and slice together lets rows see what the words say") {
    const RuleWord rules[] = {{"full", [](int, int) { return true; }},
                              {"causal", [](int i, int j) { return j <= i; }},
                              {"strict-causal", [](int i, int j) { return j < i; }},
                              {"anticausal", [](int i, int j) { return j >= i; }},
                              {"none", [](int, int) { return false; }}};
    const Near windows[] = {{"", -1, 1, 0, 0},
                            {"window=1", 1, 1, 0, 0},
                            {"window=2 dilation=2", 2, 2, 0, 0},
                            {"window=1 stride=3", 1, 1, 3, 0},
                            {"window=1 globals=1", 1, 1, 0, 1},
                            {"window=0 globals=2", 0, 1, 0, 2}};
    const std::vector<std::vector<Slice>> slices = {{},
                                                    {{"A", 0, 99}},
                                                    {{"A[0]", 0, 1}},
                                                    {{"A[-1]", -1, 99}},
                                                    {{"A[1:4]", 1, 4}},
                                                    {{"A[2:]", 2, 99}},
                                                    {{"A[0]", 0, 1}, {"A[3:5]", 3, 5}},
                                                    {{"A[:2]", 0, 2}, {"A[1:-1]", 1, -1}}};
    for (const RuleWord& rule : rules)
        for (const Near& window : windows)
            for (bool over : {false, true})
                for (const std::vector<Slice>& seen : slices) {
                    if (over && window.radius < 0) continue;
                    std::string words =
                        std::string("A full; B ") + rule.words + " " + window.words + (over ? " over=all" : "");
                    for (std::size_t i = 0; i < seen.size(); i++)
                        words += (i ? ", " : " sees ") + std::string(seen[i].words);
                    CAPTURE(words);
                    const SegmentGraph graph = MaskWords(words)(documents);
                    std::set<std::pair<int, int>> found, expected;
                    for (const QuerySegment& q : graph.queries)
                        for (int row = q.begin; row < q.end; row++)
                            for (int k = q.sees_begin; k < q.sees_end; k++) {
                                const int segment = graph.sees[std::size_t(k)];
                                const KeySegment& key = graph.keys[std::size_t(segment)];
                                for (int j = key.begin; j < key.end; j++)
                                    if (visible(graph, q, row, segment, j)) {
                                        CHECK(found.count({row, j}) == 0);  // no key is seen twice
                                        found.insert({row, j});
                                    }
                            }
                    int first = 0;
                    for (const Document& d : documents) {
                        const int n = d.source + d.target;
                        for (int i = 0; i < n; i++)
                            for (int j = 0; j < n; j++) {
                                const int a = d.source;
                                bool sees = i < a && j < a;
                                if (i >= a && j >= a) sees = rule.allows(i, j) && window.has(i, j, i - a, j - a);
                                for (const Slice& slice : seen)
                                    if (i >= a && j < a && slice.has(j, a)) sees = !over || window.has(i, j, i - a, j);
                                if (sees) expected.insert({first + i, first + j});
                            }
                        first += n;
                    }
                    CHECK(found == expected);
                }
}
