// SPDX-License-Identifier: MIT
// Sparse softmax attention: a row sees those keys of its own segment that its mask and a fixed pattern of places both
// have, and other segments whole. Place i has places j, by the options w = window, d = dilation, l = stride and g =
// globals:
//
//     window       |i - j| <= w d, a multiple of d                        van den Oord et al. 2016; Beltagy et al. 2020
//     longformer   the same; the first g places have all and are had by all     Beltagy et al. 2020, section 3.1
//     strided      |i - j| < l, or a multiple of l                              Child et al. 2019, section 4.3
//     fixed        the same block of l, or j mod l >= l - g                     Child et al. 2019, section 4.3
//     local        the same block of w, or the one before             Parmar et al. 2018, section 3.2, in one dimension
//
// All heads have one pattern, the union of the paper's two; global rows of longformer share the projections of the
// others.
#include <algorithm>
#include <cmath>

#include "engine/nn/attention/kinds.h"
#include "engine/nn/attention/softmax.h"
#include "engine/ops/visible.h"

namespace masquerade {
namespace {

enum class Pattern { window, longformer, strided, fixed, local };

QuerySegment pattern_of(Pattern kind, const AttentionShape& s) {
    const AttentionOptions& o = s.options;
    const int stride = o.stride > 0 ? o.stride : std::max(1, int(std::lround(std::sqrt(double(s.positions)))));
    QuerySegment q;
    if (kind == Pattern::window || kind == Pattern::longformer) q.window = o.window, q.dilation = o.dilation;
    if (kind == Pattern::longformer) q.globals = o.globals;
    if (kind == Pattern::strided) q.window = stride - 1, q.stride = stride;
    if (kind == Pattern::fixed) q.block = stride, q.block_last = o.globals;
    if (kind == Pattern::local) q.block = o.window, q.block_before = 1;
    return q;
}

class PatternAttention : public SoftmaxAttention {
  public:
    PatternAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s,
                     Pattern kind)
        : SoftmaxAttention(p, layer, name, s), pattern_(pattern_of(kind, s)) {}
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const Site& site) const override {
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

  private:
    QuerySegment pattern_;  // of its numbers, those of the pattern
};

}  // namespace

std::string pattern_refuses(const SegmentGraph& graph, bool from_start) {
    for (const QuerySegment& q : graph.queries) {
        if (has_pattern(q)) return "it has a window already";
        if (from_start && q.along && q.rule == Rule::anticausal)
            return "places count from the first token, and from right to left that one is written last";
    }
    return "";
}

const MakeAttention make_window = made_as<PatternAttention, Pattern::window>;
const MakeAttention make_longformer = made_as<PatternAttention, Pattern::longformer>;
const MakeAttention make_strided = made_as<PatternAttention, Pattern::strided>;
const MakeAttention make_fixed = made_as<PatternAttention, Pattern::fixed>;
const MakeAttention make_local = made_as<PatternAttention, Pattern::local>;

}  // namespace masquerade
