// SPDX-License-Identifier: MIT
// Sparse softmax attention: a row sees those keys of its own segment that its mask and a fixed pattern of places both have, and
// other segments whole. Place i has places j, by the options w = window, d = dilation, l = stride and g = globals:
//
//     window       |i - j| <= w d, a multiple of d                              van den Oord et al. 2016; Beltagy et al. 2020
//     longformer   the same; the first g places have all and are had by all     Beltagy et al. 2020, section 3.1
//     strided      |i - j| < l, or a multiple of l                              Child et al. 2019, section 4.3
//     fixed        the same block of l, or j mod l >= l - g                     Child et al. 2019, section 4.3
//     local        the same block of w, or the one before                       Parmar et al. 2018, section 3.2, in one dimension
//
// All heads have one pattern, the union of the paper's two; global rows of longformer share the projections of the others.
#pragma once
#include "engine/nn/attention/softmax.h"

namespace masquerade {

class PatternAttention : public SoftmaxAttention {
  public:
    enum class Kind { window, longformer, strided, fixed, local };
    PatternAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s, Kind kind);
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const Site& site) const override;

  private:
    QuerySegment pattern_;  // of its numbers, those of the pattern
};

// The reason why a pattern cannot be laid over a mask, or empty. Patterns from_start count places from the first token.
std::string pattern_refuses(const SegmentGraph& graph, bool from_start);

}  // namespace masquerade
