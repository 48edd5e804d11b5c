// SPDX-License-Identifier: MIT
// Multi-head attention by scaled dot products:  softmax(Q K^T / sqrt(D)) V, projected.  Vaswani et al. 2017, section
// 3.2
#pragma once
#include "engine/nn/attention/attention.h"

namespace masquerade {

class SoftmaxAttention : public Attention {
  public:
    SoftmaxAttention(Parameters& parameters, const std::string& layer, const std::string& name,
                     const AttentionShape& shape);
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const Site& site) const override;
    int kept_columns() const override { return 2 * shape_.width; }
    Tensor* kept(Tape& tape, Tensor* x, Ints positions, Tensor* turns, const char* name) const override;

  protected:
    std::string name_;
    AttentionShape shape_;
    Linear query_, key_value_, output_;

  private:
    std::vector<Tensor*> sources(Tape& tape, const Keys& keys, const Site& site) const;
};

}  // namespace masquerade
