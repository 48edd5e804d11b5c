// SPDX-License-Identifier: MIT
#include "engine/nn/attention/patterns.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/visible.h"

namespace masquerade {
namespace {

QuerySegment pattern_of(PatternAttention::Kind kind, const AttentionShape& s) {
    using K = PatternAttention::Kind;
    const AttentionOptions& o = s.options;
    const int stride = o.stride > 0 ? o.stride : std::max(1, int(std::lround(std::sqrt(double(s.positions)))));
    QuerySegment q;
    if (kind == K::window || kind == K::longformer) q.window = o.window, q.dilation = o.dilation;
    if (kind == K::longformer) q.globals = o.globals;
    if (kind == K::strided) q.window = stride - 1, q.stride = stride;
    if (kind == K::fixed) q.block = stride, q.block_last = o.globals;
    if (kind == K::local) q.block = o.window, q.block_before = 1;
    return q;
}

}  // namespace

PatternAttention::PatternAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s, Kind kind)
    : SoftmaxAttention(p, layer, name, s), pattern_(pattern_of(kind, s)) {}

Tensor* PatternAttention::operator()(Tape& tape, Queries& queries, const Keys& keys, const Site& site) const {
    SegmentGraph graph = *site.graph;
    for (QuerySegment& q : graph.queries) {
        q.window = pattern_.window, q.dilation = pattern_.dilation;
        q.stride = pattern_.stride, q.globals = pattern_.globals;
        q.block = pattern_.block, q.block_before = pattern_.block_before, q.block_last = pattern_.block_last;
    }
    Site narrowed = site;
    narrowed.graph = &tape.hold(std::move(graph));
    return SoftmaxAttention::operator()(tape, queries, keys, narrowed);
}

std::string pattern_refuses(const SegmentGraph& graph, bool from_start) {
    for (const QuerySegment& q : graph.queries) {
        if (has_pattern(q)) return "it has a window already";
        if (from_start && q.along && q.rule == Rule::anticausal)
            return "places count from the first token, and from right to left that one is written last";
    }
    return "";
}

}  // namespace masquerade
