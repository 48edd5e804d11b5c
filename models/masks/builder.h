// SPDX-License-Identifier: MIT
// Builds a segment graph, the form of a mask that attention reads (engine/ops/segments.h).
#pragma once
#include <climits>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/ops/segments.h"

namespace masquerade {

// Builds a graph document by document. A key segment is a range of rows of a key tensor; a query segment is a range of
// query rows that see the same key segments. For each document, call next_document(), then tokens() or key() to add key
// segments, then look() to add query segments. Each call of tokens() takes the next rows of one key tensor, whose index
// is the constructor's argument `source`.
class SegmentBuilder {
  public:
    explicit SegmentBuilder(int source = 0) : source_(source) {}

    void next_document() {
        first_ = row_;
        document_ = graph_.documents++;
    }
    int row() const { return row_; }
    // Adds a key segment. The arguments are the fields of struct KeySegment. Returns the index of the segment.
    int key(int source, int begin, int end, int place, int before = 0) {
        graph_.keys.push_back({source, begin, end, place, before});
        return int(graph_.keys.size()) - 1;
    }
    // Adds a key segment with the next `count` rows of key tensor source_. Returns the index of the segment.
    int tokens(int count) {
        int begin = row_;
        row_ += count;
        return key(source_, begin, row_, begin - first_);
    }
    // Skips the next `count` rows of key tensor source_: they are in no key segment, so no query sees them.
    void skip(int count) { row_ += count; }
    // Adds a query segment with the query rows [begin, end). `sees` lists the indices of the key segments that these
    // rows see, in the order in which attention visits them; empty key segments are left out. In the segment with the
    // index `self`, a row sees only the keys that `rule` allows. In the other listed segments, it sees all keys.
    // Usually, segment `self` holds the keys of the query rows themselves; if self is -1, `rule` applies to no segment.
    // The overload without `begin` and `end` uses the rows of key segment `self` as query rows.
    QuerySegment& look(int begin, int end, Rule rule, int self, const std::vector<int>& sees) {
        QuerySegment q;
        q.begin = begin;
        q.end = end;
        q.document = document_;
        q.sees_begin = int(graph_.sees.size());
        for (int index : sees)
            if (key_of(index).begin < key_of(index).end) graph_.sees.push_back(index);
        q.sees_end = int(graph_.sees.size());
        q.self = self;
        q.rule = rule;
        graph_.queries.push_back(q);
        return graph_.queries.back();
    }
    QuerySegment& look(Rule rule, int self, const std::vector<int>& sees) {
        return look(key_of(self).begin, key_of(self).end, rule, self, sees);
    }
    SegmentGraph take() { return std::move(graph_); }
    SegmentGraph& graph() { return graph_; }

  private:
    const KeySegment& key_of(int index) const { return graph_.keys[index]; }

    SegmentGraph graph_;
    int source_, row_ = 0, first_ = 0, document_ = 0;
};

// Sets the bits of a query segment with Rule::bits. sees(i, j) says whether row i of the segment sees row j of its key
// segment `self`, which has as many rows; both count from 0.
template <class Sees>
void add_bits(SegmentGraph& graph, QuerySegment& q, const Sees& sees) {
    const std::int64_t n = q.end - q.begin, begin = graph.bits.size() * 32ll, end = begin + n * n;
    if (end > INT_MAX) throw Error("mask: ", end, " bits for a batch, at most ", INT_MAX, "; use smaller batches");
    q.bits_begin = int(begin);
    graph.bits.resize((end + 31) / 32);
    for (std::int64_t i = 0, bit = begin; i < n; i++)
        for (std::int64_t j = 0; j < n; j++, bit++)
            if (sees(int(i), int(j))) graph.bits[bit / 32] |= 1u << bit % 32;
}

}  // namespace masquerade
