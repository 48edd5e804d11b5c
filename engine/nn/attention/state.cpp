// SPDX-License-Identifier: MIT
#include "engine/nn/attention/state.h"

namespace masquerade {

Tensor* StateAttention::operator()(Tape& tape, Queries& queries, const Keys& keys, const Site& site) const {
    std::vector<Tensor*> packs, kvs, gates;
    const auto take_up = [&](Tensor* x, Ints positions, Tensor* turns, const std::string& name) {
        const Taken taken = take(tape, x, positions, turns, name);
        packs.push_back(taken.pack);
        kvs.push_back(taken.kv);
        if (taken.gate) gates.push_back(taken.gate);
    };
    const KeyCache* cache = site.cache;
    if (keys.memory) take_up(keys.memory, {}, nullptr, name_ + ".memory");
    if (cache && cache->memory)
        take_up(cache->memory, cache->positions, cache->positions.count > 0 ? site.turns : nullptr, name_ + ".memory");
    if (keys.x) take_up(keys.x, keys.positions, site.turns, name_);
    if (cache && cache->own) store_rows(keys.x->view(), cache->rows, cache->own->view());
    if (queries.chosen.data) queries.x = gather_rows(tape, queries.x, queries.chosen, "chosen");
    Tensor* x = read(tape, queries.x, site.rows.position, site.turns);
    Tensor *before = nullptr, *after = nullptr;
    const bool writes = cache && cache->states;
    if (writes && !cache->fresh) before = embedding(tape, cache->rows, cache->states, name_ + ".before");
    Tensor* y = state_attention(tape, x, packs, kvs, shape_.width, *site.graph, rule_, name_, before,
                                writes ? &after : nullptr, gates);
    if (writes) store_rows(after->view(), cache->rows, cache->states->view());
    return output_(tape, beside(tape, y, x, kvs, site), name_ + ".output");  // (Nq,C)
}

}  // namespace masquerade
