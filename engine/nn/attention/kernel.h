// SPDX-License-Identifier: MIT
// Kernel attention:  y_i = sum_j (phi(q_i) . phi(k_j)) v_j / sum_j phi(q_i) . phi(k_j),  by features phi of a head:
//
//     performer   FAVOR+, random features of exp(q . k / sqrt(D))                      Choromanski et al. 2020
//     rfa         random features of exp(sum_d s_d^2 q_d k_d), q and k of length 1, s learned; gate=true: keys fade   Peng et al. 2021
//     linear      elu(x) + 1                                                           Katharopoulos et al. 2020
//
// Logarithms of features go into the state with a running maximum for each, which cancels: no epsilon, no look ahead.
#pragma once
#include "engine/nn/attention/state.h"

namespace masquerade {

class KernelAttention : public StateAttention {
  public:
    enum class Kind { performer, rfa, linear };
    KernelAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s, Kind kind);

  private:
    Tensor* read(Tape& tape, Tensor* x, Ints positions, Tensor* turns) const override;
    Taken take(Tape& tape, Tensor* x, Ints positions, Tensor* turns, const std::string& name) const override;
    Tensor* features(Tape& tape, Tensor* x, const std::string& name) const;  // (N,H*R)

    Kind kind_;
    FeatureKind map_;
    Linear query_, key_, value_, gate_;
    Tensor* random_ = nullptr;  // (features,C) w_r of every head, perhaps drawn anew every so many steps
    Tensor* sharpness_ = nullptr;  // (C) s of rfa: its random rows are s w_r
};

}  // namespace masquerade
