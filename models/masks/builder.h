// SPDX-License-Identifier: MIT
// Builds a segment graph (engine/ops/segments.h).
#pragma once
#include <utility>
#include <vector>

#include "engine/ops/segments.h"

namespace masquerade {

// Builds a graph document by document. For each document, call next_document(), then tokens() or key() for its key
// segments, then look() for its query segments. tokens() makes key segments of the key tensor `source`.
class SegmentBuilder {
  public:
    explicit SegmentBuilder(int source = 0) : source_(source) {}

    void next_document() {
        first_ = row_;
        document_ = graph_.documents++;
    }
    int row() const { return row_; }
    // Adds a key segment of any key tensor and returns its index (struct KeySegment).
    int key(int source, int begin, int end, int place, int before = 0) {
        graph_.keys.push_back({source, begin, end, place, before});
        return int(graph_.keys.size()) - 1;
    }
    // Adds a key segment with the next `count` rows of the key tensor `source`, and returns its index.
    int tokens(int count) {
        int begin = row_;
        row_ += count;
        return key(source_, begin, row_, begin - first_);
    }
    // Skips rows of the key tensor `source` that no query sees.
    void skip(int count) { row_ += count; }
    // Adds a query segment of the rows [begin, end). It sees the key segments with the indices `sees`, in this order;
    // `self` is the one with the keys of its own rows, for which the rule holds, or -1. Empty key segments are left
    // out. In the second form, the query rows are the rows of the key segment `self`.
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

}  // namespace masquerade
