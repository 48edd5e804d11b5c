// SPDX-License-Identifier: MIT
#include "engine/nn/attention/state.h"

namespace masquerade {
namespace {

// Returns the mask of a decoding step. Every row becomes a separate document, because every row continues the state of
// a different text. Every row sees its own key. In the first step, every row also sees the keys of the memory (the rows
// that were read before). In later steps, the state has already absorbed the keys of the memory.
SegmentGraph graph_of_step(const SegmentGraph& graph, bool first) {
    SegmentGraph step;
    for (const QuerySegment& all : graph.queries)
        for (int row = all.begin; row < all.end; row++) {
            QuerySegment q = all;
            q.begin = row, q.end = row + 1, q.document = step.documents++, q.offset = 0;
            for (int i = all.sees_begin; i < all.sees_end; i++) {
                KeySegment key = graph.keys[graph.sees[i]];
                const bool self = graph.sees[i] == all.self;
                if (!self && !first) continue;
                if (self) key.begin = row, key.end = row + 1, key.source = first ? key.source : 0;
                if (self) q.self = int(step.keys.size());
                step.see(key);
            }
            step.add(q);
        }
    return step;
}

}  // namespace

std::unique_ptr<AttentionState> StateAttention::state(const Slots& slots) const {
    auto state = std::make_unique<KeptState>();
    const Tensor& w = *output_.weight;
    state->per_text.emplace_back().allocate({slots.count, state_numbers(shape_.width, rule_)}, arithmetic_of(w.dtype),
                                            w.device);
    return state;
}

Tensor* StateAttention::operator()(Tape& tape, Queries& queries, const Keys& keys,
                                   const AttentionContext& context) const {
    auto* state = static_cast<KeptState*>(context.state);
    const bool first = !context.step || context.step->written == 0;
    std::vector<Tensor*> packs, kvs, gates;
    const auto take_up = [&](const Taken& taken) {
        packs.push_back(taken.pack);
        kvs.push_back(taken.kv);
        if (taken.gate) gates.push_back(taken.gate);
    };
    if (state && state->has_memory() && first)
        take_up({state->pack.tensor(), state->kv.tensor(), state->gate.tensor()});
    if (keys.memory) take_up(take(tape, keys.memory, {}, nullptr, name_ + ".memory"));
    if (keys.x) take_up(take(tape, keys.x, keys.positions, context.rotary_table, name_));
    if (state && !context.step && keys.any()) {
        state->pack.take(tape, *packs.back()), state->kv.take(tape, *kvs.back());
        if (!gates.empty()) state->gate.take(tape, *gates.back());
    }
    if (!queries.x) return nullptr;
    queries.choose(tape);
    AttentionContext here = context;
    if (context.step) here.graph = &tape.hold(graph_of_step(*context.graph, first));
    Tensor* x = read(tape, queries.x, context.rows.position, context.rotary_table);
    Tensor *before = nullptr, *after = nullptr;
    if (!first) before = embedding(tape, context.step->slots, state->per_text[0].tensor(), name_ + ".before");
    Tensor* y = state_attention(tape, x, packs, kvs, shape_.width, *here.graph, rule_, name_, before,
                                context.step ? &after : nullptr, gates);
    if (context.step) state->per_text[0].store(tape, context.step->slots, after);
    return output_(tape, beside(tape, y, x, kvs, here), name_ + ".output");  // (Nq,C): Nq query rows
}

}  // namespace masquerade
