// SPDX-License-Identifier: MIT
// Sparse softmax attention: of its own segment, a row sees the keys that both its mask and a fixed pattern of positions
// allow; other segments that it sees, it sees whole. The pattern of position i consists of the following positions j,
// with the options w = window, d = dilation, l = stride and g = globals:
//
//     window       |i - j| <= w d, a multiple of d                        van den Oord et al. 2016; Beltagy et al. 2020
//     longformer   as window; the first g positions see all and are seen by all Beltagy et al. 2020, section 3.1
//     strided      |i - j| < l, or a multiple of l                              Child et al. 2019, section 4.3
//     fixed        the same block of l, or j mod l >= l - g                     Child et al. 2019, section 4.3
//     local        the same block of w, or the one before             Parmar et al. 2018, section 3.2, in one dimension
//
// All heads have the same pattern; for `strided` and `fixed`, it is the union of the two patterns that Child et al.
// give to different heads. In longformer, global rows use the same projections as the other rows.
#include <algorithm>
#include <cmath>

#include "engine/nn/attention/softmax.h"
#include "engine/ops/visible.h"

namespace masquerade {
namespace {

// The parameters of a pattern. Subclasses declare some of them as settings; settle() computes the ones that depend on
// the number of positions.
struct PatternOptions : QuerySegment {
    void settle(int /*positions*/) {}
    void add_stride(AttentionSettings& s, int* length) {
        s.add("stride", length, "l, a distance or the size of a block; 0: square root of the number of positions", 0,
              65536);
    }
    static int length(int stride, int positions) {
        return stride > 0 ? stride : std::max(1, int(std::lround(std::sqrt(double(positions)))));
    }
};

struct WindowOptions : PatternOptions {
    void declare(AttentionSettings& s) {
        window = 16;
        s.add("window", &window, "positions to either side", 1, 16384);
        s.add("dilation", &dilation, "distance between two positions of the window", 1, 16384);
    }
};

struct LongformerOptions : WindowOptions {
    void declare(AttentionSettings& s) {
        WindowOptions::declare(s);
        globals = 1;
        s.add("globals", &globals, "number of first positions that all rows see", 0, 16384);
    }
};

struct StridedOptions : PatternOptions {
    void declare(AttentionSettings& s) { add_stride(s, &stride); }
    void settle(int positions) { stride = length(stride, positions), window = stride - 1; }
};

struct FixedOptions : PatternOptions {
    void declare(AttentionSettings& s) {
        block_last = 1;
        s.add("globals", &block_last, "number of summary positions at the end of each block", 0, 16384);
        add_stride(s, &block);
    }
    void settle(int positions) { block = length(block, positions); }
};

struct LocalOptions : PatternOptions {
    void declare(AttentionSettings& s) {
        block = 16, block_before = 1;
        s.add("window", &block, "size of a block", 1, 16384);
    }
};

class PatternAttention : public SoftmaxAttention {
  public:
    template <class Options>
    PatternAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s,
                     Options options)
        : SoftmaxAttention(p, layer, name, s) {
        options.settle(s.positions);
        pattern_ = options;
    }
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const AttentionContext& context) const override {
        SegmentGraph graph = context.graph ? *context.graph : SegmentGraph();
        for (QuerySegment& q : graph.queries) {
            q.window = pattern_.window, q.dilation = pattern_.dilation;
            q.stride = pattern_.stride, q.globals = pattern_.globals;
            q.block = pattern_.block, q.block_before = pattern_.block_before, q.block_last = pattern_.block_last;
        }
        AttentionContext narrowed = context;
        narrowed.graph = &tape.hold(std::move(graph));
        return SoftmaxAttention::operator()(tape, queries, keys, narrowed);
    }

  private:
    QuerySegment pattern_;  // only the parameters of the pattern are used
};

// `from_start`: the pattern counts positions from the first token.
template <bool from_start>
std::string refuses(const SegmentGraph& graph) {
    for (const QuerySegment& q : graph.queries) {
        if (has_pattern(q)) return "it has a window already";
        if (from_start && q.along && q.rule == Rule::anticausal)
            return "places count from the first token, and from right to left that one is written last";
    }
    return "";
}

template <class Options, bool from_start>
constexpr AttentionKind row(const char* name, const char* what) {
    return with_groups(kind_of<PatternAttention, Options>(name, what, true, true, refuses<from_start>, "softmax"));
}

}  // namespace

const AttentionKind window_kind = row<WindowOptions, false>("window", "softmax over the places nearby");
const AttentionKind longformer_kind =
    row<LongformerOptions, true>("longformer", "the same, and the first places see all and are seen");
const AttentionKind strided_kind =
    row<StridedOptions, false>("strided", "softmax over the places nearby and every l-th one");
const AttentionKind fixed_kind = row<FixedOptions, true>("fixed", "softmax over a block and the ends of all blocks");
const AttentionKind local_kind = row<LocalOptions, true>("local", "softmax over a block and the one before");

}  // namespace masquerade
