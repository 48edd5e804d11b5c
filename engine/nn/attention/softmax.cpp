// SPDX-License-Identifier: MIT
#include "engine/nn/attention/softmax.h"

#include "engine/nn/attention/kinds.h"

namespace masquerade {

SoftmaxAttention::SoftmaxAttention(Parameters& p, const std::string& layer, const std::string& name,
                                   const AttentionShape& s)
    : name_(name),
      shape_(s),
      query_(p, layer + "." + name + ".query", s.width, s.width, s.deviation),
      key_value_(p, layer + "." + name + ".key_value", s.width, 2 * s.width, s.deviation),
      output_(p, layer + "." + name + ".output", s.width, s.width, s.deviation) {}

Tensor* SoftmaxAttention::operator()(Tape& tape, Queries& queries, const Keys& keys, const Site& site) const {
    const std::vector<Tensor*> kv = sources(tape, keys, site);  // of (Nk,2C) each
    if (queries.chosen.data) queries.x = gather_rows(tape, queries.x, queries.chosen, "chosen");
    Tensor* q = query_.rotated(tape, queries.x, site.rows.position, site.turns, shape_.width, name_ + ".query");
    Tensor* a = attention(tape, q, kv, *site.graph, shape_.heads, site.dropout, site.rows, name_);  // (Nq,C)
    return output_(tape, a, name_ + ".output");
}

Tensor* SoftmaxAttention::kept(Tape& tape, Tensor* x, Ints positions, Tensor* turns, const char* name) const {
    const int turned = shape_.rotary_value ? 2 * shape_.width : shape_.width;  // keys; values as well
    return key_value_.rotated(tape, x, positions, turns, turned, name_ + "." + name);
}

std::vector<Tensor*> SoftmaxAttention::sources(Tape& tape, const Keys& keys, const Site& site) const {
    const KeyCache* cache = site.cache;
    if (cache && !cache->own) return {cache->memory};
    Tensor* own = kept(tape, keys.x, keys.positions, site.turns, "key_value");
    if (!cache) {
        if (!keys.memory) return {own};
        return {kept(tape, keys.memory, {}, nullptr, "memory"), own};  // at position 0 the rotation is the identity
    }
    store_rows(own->view(), cache->rows, cache->own->view());
    if (!cache->memory) return {cache->own};
    return {cache->memory, cache->own};
}

const MakeAttention make_softmax = made_as<SoftmaxAttention>;

}  // namespace masquerade
