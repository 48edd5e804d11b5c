// SPDX-License-Identifier: MIT
// Causal Luna (Ma et al. 2021, section 3.3, and its code, which packs before it projects): l learned rows P pack the
// keys and values seen so far into l slots; a query attends to the slots.
//
//     s_jr = p_r . k'_j / sqrt(D)     w = softplus(s), elu(s) + 1, over the number of keys; or exp(s), over its sum
//     b = softmax_r(q . K_r / sqrt(D)),  y = sum_r b_r V_r
//
// P is the same in every layer's call and sees no token, so that nothing flows around the mask.
#include <numeric>

#include "engine/nn/attention/kinds.h"
#include "engine/nn/attention/state.h"

namespace masquerade {
namespace {

StateRule rule_of(const AttentionShape& s) {
    const bool softmax = s.options.pack == LunaPack::softmax;
    return {s.heads, s.options.slots, softmax ? StatePack::exponential : StatePack::sum, StateRead::attend, 1, 0};
}

class LunaCausalAttention : public StateAttention {
  public:
    LunaCausalAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s)
        : StateAttention(p, layer, name, s, rule_of(s)),
          rows_(std::size_t(s.options.slots)),
          slots_(p.add(layer + "." + name + ".slots", {s.options.slots, s.width}, {Init::normal, 1})),
          pack_query_(part(p, layer, "pack_query", s.width)),
          pack_key_(part(p, layer, "pack_key", s.width)),
          query_(part(p, layer, "query", s.width)),
          key_value_(part(p, layer, "key_value", s.options.tied ? s.width : 2 * s.width)) {
        std::iota(rows_.begin(), rows_.end(), 0);
    }

  private:
    Tensor* read(Tape& tape, Tensor* x, Ints positions, Tensor* turns) const override {
        return query_.rotated(tape, x, positions, turns, shape_.width, name_ + ".query");
    }
    Taken take(Tape& tape, Tensor* x, Ints positions, Tensor* turns, const std::string& name) const override {
        if (turns && shape_.options.tied)
            throw BadUsage("luna_causal: keys that are values cannot be turned; set tied=false or rotary=false");
        // (l,C)
        Tensor* p = pack_query_(tape, embedding(tape, tape.ints(rows_), slots_, name + ".slots"), name + ".pack_query");
        Tensor* k = pack_key_(tape, x, name + ".pack_key");  // (Nk,C)
        Tensor* s =
            head_scores(tape, k, p, shape_.heads, 1 / std::sqrt(double(shape_.width / shape_.heads)), name + ".scores");
        if (shape_.options.pack != LunaPack::softmax)
            s = feature_map(tape, s, nullptr, shape_.heads, 1,
                            shape_.options.pack == LunaPack::elu ? FeatureKind::elu : FeatureKind::softplus,
                            name + ".pack");
        return {s, keys_and_values(tape, key_value_, x, positions, turns, name)};
    }

    std::vector<int> rows_;  // 0 .. l-1, of P
    Tensor* slots_;          // P (l,C)
    Linear pack_query_, pack_key_, query_, key_value_;
};

}  // namespace

const MakeAttention make_luna_causal = made_as<LunaCausalAttention>;

}  // namespace masquerade
