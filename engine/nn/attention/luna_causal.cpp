// SPDX-License-Identifier: MIT
#include "engine/nn/attention/luna_causal.h"

#include <numeric>

namespace masquerade {
namespace {

StateRule rule_of(const AttentionShape& s) {
    const bool softmax = s.options.pack == LunaPack::softmax;
    return {s.heads, s.options.slots, softmax ? StatePack::exponential : StatePack::sum, StateRead::attend, 1, 0};
}

}  // namespace

LunaCausalAttention::LunaCausalAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s)
    : StateAttention(p, layer, name, s, rule_of(s)),
      rows_(std::size_t(s.options.slots)),
      slots_(p.add(layer + "." + name + ".slots", {s.options.slots, s.width}, {Init::normal, 1})),
      pack_query_(part(p, layer, "pack_query", s.width)),
      pack_key_(part(p, layer, "pack_key", s.width)),
      query_(part(p, layer, "query", s.width)),
      key_value_(part(p, layer, "key_value", s.options.tied ? s.width : 2 * s.width)) {
    std::iota(rows_.begin(), rows_.end(), 0);
}

Tensor* LunaCausalAttention::read(Tape& tape, Tensor* x, Ints positions, Tensor* turns) const {
    return query_.rotated(tape, x, positions, turns, shape_.width, name_ + ".query");
}

StateAttention::Taken LunaCausalAttention::take(Tape& tape, Tensor* x, Ints positions, Tensor* turns, const std::string& name) const {
    if (turns && shape_.options.tied) throw BadUsage("luna_causal: keys that are values cannot be turned; set tied=false or rotary=false");
    Tensor* p = pack_query_(tape, embedding(tape, tape.ints(rows_), slots_, name + ".slots"), name + ".pack_query");  // (l,C)
    Tensor* k = pack_key_(tape, x, name + ".pack_key");           // (Nk,C)
    Tensor* s = head_scores(tape, k, p, shape_.heads, 1 / std::sqrt(double(shape_.width / shape_.heads)), name + ".scores");
    if (shape_.options.pack != LunaPack::softmax)
        s = feature_map(tape, s, nullptr, shape_.heads, 1,
                        shape_.options.pack == LunaPack::elu ? FeatureKind::elu : FeatureKind::softplus, name + ".pack");
    return {s, key_value_.rotated(tape, x, positions, turns, shape_.width, name + ".key_value")};
}

}  // namespace masquerade
