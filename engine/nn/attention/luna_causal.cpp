// SPDX-License-Identifier: MIT
// Causal Luna (Ma et al. 2021, section 3.3, and the authors' code): l learned rows P pack the keys and values that a
// query sees into l slots, and the query attends to the slots. For each head:
//
//     s_jr = p_r . k'_j / sqrt(D)             score of key j in slot r; p_r = P_r W_pq, k'_j = x_j W_pk
//     w_jr = log2(1 + 2^s_jr)                 divided by the number of keys           pack=softplus
//     w_jr = elu(s_jr) + 1                    divided by the number of keys           pack=elu
//     w_jr = exp(s_jr)                        divided by the sum over the keys j      pack=softmax
//     K_r = sum_j w_jr k_j,  V_r = sum_j w_jr v_j
//     b = softmax_r(q . K_r / sqrt(D)),  y = sum_r b_r V_r
//
// P consists of parameters and does not depend on any token, so P cannot reveal tokens that the mask hides.
#include <numeric>

#include "engine/math/features.h"
#include "engine/nn/attention/state.h"

namespace masquerade {
namespace {

struct LunaCausalOptions {
    int slots = 16;
    bool tied = false;
    std::string pack = "softplus";
    void declare(AttentionSettings& s) {
        s.add("slots", &slots, help_of_slots, 1, 65536);
        s.add("tied", &tied, "use the keys as values; needs rotary=false");
        s.add("pack", &pack,
              "each packed row has a learned query; function that turns the scores of this query with the keys into "
              "weights",
              {"softplus", "elu", "softmax"});
    }
};

StateRule rule_of(const AttentionShape& s, const LunaCausalOptions& o) {
    const bool softmax = o.pack == "softmax";
    return {s.heads, o.slots, softmax ? StatePack::exponential : StatePack::sum, StateRead::attend, 1, 0};
}

class LunaCausalAttention : public StateAttention {
  public:
    LunaCausalAttention(const AttentionPlace& at, const LunaCausalOptions& o)
        : StateAttention(at, rule_of(at.shape, o)),
          options_(o),
          rows_(o.slots),
          slots_(at.add("slots", {o.slots, shape_.width}, {Init::normal, 1})),
          pack_query_(at.linear("pack_query")),
          pack_key_(at.linear("pack_key")) {
        query_ = at.linear("query");
        key_value_ = at.linear("key_value", o.tied ? shape_.width : 2 * shape_.width);
        std::iota(rows_.begin(), rows_.end(), 0);
    }

  private:
    Taken take(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table, const std::string& name) const override {
        if (rotary_table && options_.tied)
            throw BadUsage(
                "luna_causal: tied=true uses keys as values, which cannot be rotated; set tied=false or rotary=false");
        // p is (l,C): the projections of the l learned rows P.
        Tensor* p = pack_query_(tape, embedding(tape, tape.ints(rows_), slots_, name + ".slots"), name + ".pack_query");
        Tensor* k = pack_key_(tape, x, name + ".pack_key");  // (Nk,C): Nk keys
        Tensor* s =
            head_scores(tape, k, p, shape_.heads, 1 / std::sqrt(double(shape_.width / shape_.heads)), name + ".scores");
        if (options_.pack != "softmax")
            s = feature_map(tape, s, nullptr, shape_.heads, 1,
                            options_.pack == "elu" ? FeatureKind::elu : FeatureKind::softplus, name + ".pack");
        return {s, keys_and_values(tape, key_value_, x, positions, rotary_table, name)};
    }

    LunaCausalOptions options_;
    std::vector<int> rows_;  // the indices of the l learned rows: 0 to l - 1
    Tensor* slots_;          // (l,C): the l learned rows P
    Linear pack_query_, pack_key_, key_value_;
};

}  // namespace

const AttentionKind luna_causal_kind = kind_of<LunaCausalAttention, LunaCausalOptions>(
    "luna_causal", "keys are packed into learned slots, to which queries attend", true, false, state_refuses);

}  // namespace masquerade
