// SPDX-License-Identifier: MIT
// Sorted blocks (Sinkhorn Transformer; Tay et al. 2020, section 3): a row looks at its own block of rows, and at the block that
// a matrix of Sinkhorn's iterations S has put in its place, K'_u[t] = sum_v S_uv K_v[t] and V' of V alike. The scores of S are
// those of the means of queries and keys; no noise is drawn. A segment of one block has nothing to sort.
#pragma once
#include "engine/nn/attention/softmax.h"

namespace masquerade {

class SinkhornAttention : public SoftmaxAttention {
  public:
    using SoftmaxAttention::SoftmaxAttention;
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const Site& site) const override;
};

}  // namespace masquerade
