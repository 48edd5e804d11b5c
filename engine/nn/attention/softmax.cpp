// SPDX-License-Identifier: MIT
#include "engine/nn/attention/softmax.h"

#include "engine/nn/attention/kept.h"

namespace masquerade {

SoftmaxAttention::SoftmaxAttention(const AttentionPlace& at, const NoOptions&)
    : ProjectedAttention(at),
      query_(at.linear("query")),
      key_value_(at.linear("key_value", 2 * shape_.key_width())),
      output_(at.linear("output")) {}

Tensor* SoftmaxAttention::operator()(Tape& tape, Queries& queries, const Keys& keys,
                                     const AttentionContext& context) const {
    // If all rows are queries and keys, one op projects them to queries, keys and values.
    QueryKeyValue own;
    if (keys.x && keys.x == queries.x && !queries.chosen.data && context.rotary_table)
        own = query_key_value(tape, keys.x, query_.weight, query_.bias, key_value_.weight, key_value_.bias,
                              context.rotary_table, keys.positions, turned(), name_ + ".query", name_ + ".key_value");
    else if (keys.x)
        own.kv = keys_and_values(tape, keys.x, keys.positions, context.rotary_table, "key_value");
    // Each tensor in kv is (Nk,2 G D): a row holds the keys of G heads of width D, then their values.
    const std::vector<Tensor*> kv = sources(tape, own.kv, keys, context);
    if (!queries.x) return nullptr;
    queries.choose(tape);
    if (!own.q)
        own.q = query_.rotated(tape, queries.x, context.rows.position, context.rotary_table, shape_.width,
                               name_ + ".query");
    return output_(tape, attend(tape, own.q, kv, context), name_ + ".output");
}

Tensor* SoftmaxAttention::attend(Tape& tape, Tensor* q, const std::vector<Tensor*>& kv,
                                 const AttentionContext& context) const {
    return attention(tape, q, kv, *context.graph, shape_.heads, context.dropout, context.rows, name_);
}

Tensor* SoftmaxAttention::keys_and_values(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table,
                                          const char* name) const {
    return key_value_.rotated(tape, x, positions, rotary_table, turned(), name_ + "." + name);
}

int SoftmaxAttention::turned() const { return (shape_.rotary_value ? 2 : 1) * shape_.key_width(); }

namespace {
// The decoding state, a KV cache. `memory` holds the keys and values of the rows that were read before the first step:
// a source text, latents or the encoder's rows. `own` holds the keys and values of the generated tokens.
struct KeptKeys : AttentionState {
    Kept memory, own;
    bool writes = false;  // whether a step has stored rows in `own`; those of cross-attention never do
    bool has_memory() override { return memory.tensor(); }
    bool forget() override { return memory.forget(), writes = false, true; }
    void branch(Tape& tape, const Branches& b) override {
        if (writes) own.copy(tape, b.from_rows, b.to_rows);
    }
};
}  // namespace

std::unique_ptr<AttentionState> SoftmaxAttention::state(const Slots& slots) const {
    auto state = std::make_unique<KeptKeys>();
    const Tensor& w = *key_value_.weight;
    state->own.allocate({slots.count * slots.longest, w.rows()}, w.dtype, w.device);
    return state;
}

std::vector<Tensor*> SoftmaxAttention::sources(Tape& tape, Tensor* own, const Keys& keys,
                                               const AttentionContext& context) const {
    auto* state = static_cast<KeptKeys*>(context.state);
    std::vector<Tensor*> all;
    if (state && state->has_memory()) all.push_back(state->memory.tensor());
    if (own) all.push_back(own);
    // The keys of the memory are not rotated, because their position is 0. Although the memory precedes x in `all`, the
    // op for the memory must be recorded after the op for x: the order of the records determines the order in which
    // gradients are summed, and thus their rounding.
    if (keys.memory) all.insert(all.begin(), keys_and_values(tape, keys.memory, {}, nullptr, "memory"));
    if (!state || !keys.any()) return all;
    if (!context.step) return state->memory.take(tape, *all.back()), all;
    state->own.store(tape, context.step->rows, all.back());
    state->writes = true;
    all.back() = state->own.tensor();
    return all;
}

namespace {
std::string honours_all(const SegmentGraph&) { return ""; }
}  // namespace

const AttentionKind softmax_kind = with_groups(
    kind_of<SoftmaxAttention>("softmax", "every query weighs every key that it sees", true, true, honours_all));

}  // namespace masquerade
