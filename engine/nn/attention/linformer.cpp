// SPDX-License-Identifier: MIT
// Linformer (Wang et al. 2020) as a state of bounded size (engine/math/state.h). Each position j has a learned weight
// E[j,r] for each slot r. Slot r is the sum of the visible keys and values, weighted by E[j,r] and divided by the
// number of keys, and a query attends to the slots. Apart from this division, a full mask gives the paper's K = E X
// W_K and V = F X W_V with F = E. Under a causal mask, a query reads slots that contain only the keys that the query
// sees. Positions beyond the table E are an error, as with learned position embeddings.
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
    Tensor* positions_;  // E (P,H*R): weights of each of P positions for R slots in each of H heads
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
