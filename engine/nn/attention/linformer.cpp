// SPDX-License-Identifier: MIT
// Linformer (Wang et al. 2020) as a bounded state: slot r absorbs key j with the learned weight E[j,r] of its position,
// divided by the number of keys, and a query attends to the slots. Under a full mask this is the paper's
// K = E X W_K, V = E X W_V, E = F. Under a causal mask, the slots that a query reads contain only the keys that it
// sees, divided by their number. Positions beyond the table are an error, as with learned positions.
#include "engine/nn/attention/state.h"

namespace masquerade {
namespace {

struct LinformerOptions {
    int slots = 16;
    void declare(AttentionSettings& s) { s.add("slots", &slots, "rows that keys are packed into", 1, 65536); }
};

class LinformerAttention : public StateAttention {
  public:
    LinformerAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s,
                       const LinformerOptions& o)
        : StateAttention(p, layer, name, s, {s.heads, o.slots, StatePack::sum, StateRead::attend, 1, 0}),
          positions_(p.add(layer + "." + name + ".positions", {s.positions, s.heads * o.slots}, {Init::normal, 1})),
          query_(part(p, layer, "query", s.width)),
          key_value_(part(p, layer, "key_value", 2 * s.width)) {}

  private:
    Tensor* read(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table) const override {
        return query_.rotated(tape, x, positions, rotary_table, shape_.width, name_ + ".query");
    }
    Taken take(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table, const std::string& name) const override {
        Tensor* pack = convert(tape, embedding(tape, positions, positions_, name + ".weights"),
                               arithmetic_of(tape.dtype), name + ".pack");
        return {pack, keys_and_values(tape, key_value_, x, positions, rotary_table, name)};
    }
    Tensor* positions_;  // E (P,H*R)
    Linear query_, key_value_;
};

constexpr AttentionKind row() {
    AttentionKind kind = kind_of<LinformerAttention, LinformerOptions>(
        "linformer", "keys are packed by learned weights of their positions", true, false, state_refuses);
    kind.needs_positions = true;
    return kind;
}

}  // namespace

const AttentionKind linformer_kind = row();

}  // namespace masquerade
