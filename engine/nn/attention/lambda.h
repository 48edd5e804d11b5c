// SPDX-License-Identifier: MIT
// Lambda (Bello 2021). Content: keys are weighed over the positions, for each of their D numbers apart, and the sum over the
// positions is a linear function of the query:  y_i = (sum_j softmax_j(k_j / sqrt(D)) v_j^T) q_i. Nothing norms over queries.
// With `reach`, self-attention adds the local positional lambda, by learned vectors of distances:
//     y_i += (sum_j e_(j-i) v_j^T) q_i,   |j - i| <= reach in the row's own segment, as the mask lets it see
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
          value_(part(p, layer, "value", s.width)),
          reach_(name == "cross" ? 0 : s.options.reach) {
        if (reach_ > 0) distances_ = p.add(layer + "." + name + ".distances", {2 * reach_ + 1, s.width}, {Init::normal, s.deviation});
    }
    int near_rows() const override { return reach_; }  // the last values

  private:
    Tensor* read(Tape& tape, Tensor* x, Ints, Tensor*) const override {
        return linear_unrounded(tape, x, query_.weight, query_.bias, name_ + ".query");
    }
    Taken take(Tape& tape, Tensor* x, Ints, Tensor*, const std::string& name) const override {
        return {linear_unrounded(tape, x, key_.weight, key_.bias, name + ".key"), value_(tape, x, name + ".value")};
    }
    Tensor* beside(Tape& tape, Tensor* y, Tensor* q, const std::vector<Tensor*>& values, const Site& site) const override;
    void keep_near(Tape& tape, const SegmentGraph& graph, const std::vector<Tensor*>& values, const KeyCache& cache) const;

    Linear query_, key_, value_;
    int reach_;
    Tensor* distances_ = nullptr;  // e (2 reach + 1,C)
};

}  // namespace masquerade
