// SPDX-License-Identifier: MIT
// Content lambda (Bello 2021): keys are weighed over the positions, for each of their D numbers apart, and the sum over the
// positions is a linear function of the query:  y_i = (sum_j softmax_j(k_j / sqrt(D)) v_j^T) q_i. Nothing norms over queries.
#pragma once
#include "engine/nn/attention/state.h"

namespace masquerade {

class LambdaAttention : public StateAttention {
  public:
    LambdaAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s)
        : StateAttention(p, layer, name, s,
                         {s.heads, s.width / s.heads, StatePack::exponential, StateRead::linear,
                          1 / std::sqrt(double(s.width / s.heads)), 0}),
          query_(part(p, layer, "query", s.width)),
          key_(part(p, layer, "key", s.width)),
          value_(part(p, layer, "value", s.width)) {}

  private:
    Tensor* read(Tape& tape, Tensor* x, Ints, Tensor*) const override {
        return linear_unrounded(tape, x, query_.weight, query_.bias, name_ + ".query");
    }
    Taken take(Tape& tape, Tensor* x, Ints, Tensor*, const std::string& name) const override {
        return {linear_unrounded(tape, x, key_.weight, key_.bias, name + ".key"), value_(tape, x, name + ".value")};
    }
    Linear query_, key_, value_;
};

}  // namespace masquerade
