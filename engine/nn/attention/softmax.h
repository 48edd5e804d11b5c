// SPDX-License-Identifier: MIT
// Multi-head softmax attention: each of H heads of width D computes softmax(Q K^T / sqrt(D)) V, and a linear layer maps
// the concatenated results to the output (Vaswani et al. 2017, section 3.2). If there are only G < H key/value heads,
// H / G query heads share each key/value head (Ainslie et al. 2023).
#pragma once
#include "engine/nn/attention/kinds.h"

namespace masquerade {

class SoftmaxAttention : public ProjectedAttention {
  public:
    SoftmaxAttention(const AttentionPlace& at, const NoOptions& = {});
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const AttentionContext& context) const override;
    std::unique_ptr<AttentionState> state(const Slots& slots) const override;
    bool keeps_rows() const override { return true; }

  protected:
    // Returns the results of all heads, side by side (Nq,C). A kind that sees only a fixed pattern of positions
    // overrides this function and narrows the mask.
    virtual Tensor* attend(Tape& tape, Tensor* q, const std::vector<Tensor*>& kv,
                           const AttentionContext& context) const;
    // Returns the keys and values of the Nk rows of x for G heads of width D, (Nk,2 G D). The path of this tensor ends
    // with `name`.
    Tensor* keys_and_values(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table, const char* name) const;

    Linear query_, key_value_, output_;

  private:
    // Returns all key sources of the mask. `own` holds the keys and values of keys.x, or is null.
    std::vector<Tensor*> sources(Tape& tape, Tensor* own, const Keys& keys, const AttentionContext& context) const;
    // Returns how many columns of the keys and values are rotated.
    int turned() const;
};

// Returns the kind with groups_heads set: its keys and values may have fewer heads than its queries.
constexpr AttentionKind with_groups(AttentionKind kind) {
    kind.groups_heads = true;
    return kind;
}

}  // namespace masquerade
