// SPDX-License-Identifier: MIT
// Attention by buckets (Reformer; Kitaev et al. 2020, section 2): queries are keys, k = q / |q|, and a row looks at the rows of
// its own bucket in its chunk of the sorted rows and the one before, at itself only where there are none. Softmax is exact over
// the union of what all rounds have found. The rotations stay as the seed drew them; what is turned is hashed turned.
#pragma once
#include "engine/nn/attention/attention.h"

namespace masquerade {

class LshAttention : public Attention {
  public:
    LshAttention(Parameters& parameters, const std::string& layer, const std::string& name, const AttentionShape& shape);
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const Site& site) const override;
    int kept_columns() const override { return shape_.width; }
    Tensor* kept(Tape&, Tensor*, Ints, Tensor*, const char*) const override;

  private:
    std::string name_;
    AttentionShape shape_;
    Linear query_, value_, output_;
    Tensor* random_;  // (rounds * buckets / 2,C)
};

}  // namespace masquerade
