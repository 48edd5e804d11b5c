// SPDX-License-Identifier: MIT
// Causal Luna (Ma et al. 2021, section 3.3, and its code, which packs before it projects): l learned rows P pack the keys and
// values seen so far into l slots; a query attends to the slots.
//
//     s_jr = p_r . k'_j / sqrt(D)          w = softplus(s), elu(s) + 1, over the number of keys; or exp(s), over its sum
//     b = softmax_r(q . K_r / sqrt(D)),  y = sum_r b_r V_r
//
// P is the same in every layer's call and sees no token, so that nothing flows around the mask.
#pragma once
#include "engine/nn/attention/state.h"

namespace masquerade {

class LunaCausalAttention : public StateAttention {
  public:
    LunaCausalAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s);

  private:
    Tensor* read(Tape& tape, Tensor* x, Ints positions, Tensor* turns) const override;
    Taken take(Tape& tape, Tensor* x, Ints positions, Tensor* turns, const std::string& name) const override;

    std::vector<int> rows_;  // 0 .. l-1, of P
    Tensor* slots_;          // P (l,C)
    Linear pack_query_, pack_key_, query_, key_value_;
};

}  // namespace masquerade
