// SPDX-License-Identifier: MIT
// Sparse softmax attention. A row sees a key of its own segment only if both the mask and a fixed pattern of positions
// allow it. If the mask treats all segments of a document as one text (QuerySegment::along), the pattern also limits
// the keys of other segments; otherwise, only the mask limits them. With the options w = window, d = dilation,
// l = stride and g = globals, the pattern lets position i see position j in these cases:
//
//     window       |i - j| <= w d and i - j is a multiple of d      van den Oord et al. 2016; Beltagy et al. 2020
//     longformer   like window, or i < g or j < g                   Beltagy et al. 2020, section 3.1
//     strided      |i - j| < l, or i - j is a multiple of l         Child et al. 2019, section 4.3
//     fixed        i and j are in the same block of l positions,    Child et al. 2019, section 4.3
//                  or j mod l >= l - g
//     local        j is in the same block of w positions as i,      Parmar et al. 2018, section 3.2, in one dimension
//                  or in the block before it
//
// All heads have the same pattern; the kind `by_head` (by_head.cpp) gives each head a separate pattern. Child et al.
// give different heads different patterns; here `strided` and `fixed` use the union of these patterns. Beltagy et al.
// use separate projections for global attention; here all rows use the same projections.
#include "engine/nn/attention/patterns.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/visible.h"

namespace masquerade {
namespace {

// Each subclass declares some fields of the pattern as settings. settle() computes the fields that depend on the number
// of positions.
struct PatternOptions : SegmentPattern {
    void settle(int /*positions*/) {}
    void add_stride(AttentionSettings& s, int* length) {
        s.add("stride", length,
              "distance l between the positions that a row sees (strided), or size l of a block (fixed); 0: "
              "square root of the number of positions",
              0, 65536);
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
        s.add("globals", &globals, "number of first positions that all rows see (a row is the vector of one position)",
              0, 16384);
    }
};

struct StridedOptions : PatternOptions {
    void declare(AttentionSettings& s) { add_stride(s, &stride); }
    void settle(int positions) { stride = stride_or_root(stride, positions), window = stride - 1; }
};

struct FixedOptions : PatternOptions {
    void declare(AttentionSettings& s) {
        block_last = 1;
        s.add("globals", &block_last, "number of places at the end of each block that rows of other blocks see, too", 0,
              16384);
        add_stride(s, &block);
    }
    void settle(int positions) { block = stride_or_root(block, positions); }
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
    PatternAttention(const AttentionPlace& at, Options options) : SoftmaxAttention(at) {
        options.settle(shape_.positions);
        pattern_ = options;
    }

  protected:
    Tensor* attend(Tape& tape, Tensor* q, const std::vector<Tensor*>& kv,
                   const AttentionContext& context) const override {
        AttentionContext narrowed = context;
        narrowed.graph = &tape.hold(with_pattern(*context.graph, pattern_));
        return SoftmaxAttention::attend(tape, q, kv, narrowed);
    }

  private:
    SegmentPattern pattern_;
};

template <bool from_start>
std::string refuses(const SegmentGraph& graph) {
    return pattern_refuses(graph, from_start);
}

template <class Options, bool from_start>
constexpr AttentionKind row(const char* name, const char* what) {
    return with_groups(kind_of<PatternAttention, Options>(name, what, true, true, refuses<from_start>));
}

}  // namespace

SegmentGraph with_pattern(SegmentGraph graph, const SegmentPattern& pattern) {
    for (SegmentPattern& q : graph.queries) q = pattern;
    return graph;
}

std::string pattern_refuses(const SegmentGraph& graph, bool from_start) {
    for (const QuerySegment& q : graph.queries) {
        if (has_pattern(q)) return "the mask has a window already";
        // The pattern counts positions from the first token, which is generated last if generation runs from right to
        // left.
        if (from_start && q.along && q.rule == Rule::anticausal)
            return "the pattern counts places from the first token, and under this mask that token is written last";
    }
    return "";
}

int stride_or_root(int stride, int positions) {
    return stride > 0 ? stride : std::max(1, int(std::lround(std::sqrt(double(positions)))));
}

const AttentionKind window_kind = row<WindowOptions, false>("window", "softmax over the places nearby");
const AttentionKind longformer_kind =
    row<LongformerOptions, true>("longformer", "the same, and the first places see all and are seen");
const AttentionKind strided_kind =
    row<StridedOptions, false>("strided", "softmax over the places nearby and every l-th one");
const AttentionKind fixed_kind = row<FixedOptions, true>("fixed", "softmax over a block and the ends of all blocks");
const AttentionKind local_kind = row<LocalOptions, true>("local", "softmax over a block and the one before");

}  // namespace masquerade
