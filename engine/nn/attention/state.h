// SPDX-License-Identifier: MIT
// Attention through a bounded state (engine/math/state.h): the base class of these kinds. A kind defines read(), what a
// query reads the state with, and take(), what the state absorbs from a row. Time and memory are linear in the number
// of rows, under every mask that a kind accepts.
#pragma once
#include "engine/nn/attention/kept.h"
#include "engine/nn/attention/kinds.h"
#include "engine/ops/state_plan.h"

namespace masquerade {

class StateAttention : public ProjectedAttention {
  public:
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const AttentionContext& context) const override;
    std::unique_ptr<AttentionState> state(const Slots& slots) const override;

  protected:
    // The part of rows x (Nk,C) that the state absorbs: the pack (Nk,H*R); kv, values (Nk,C) or keys and values
    // (Nk,2C); for gated packs also the gate (Nk,H), logits.
    struct Taken {
        Tensor *pack, *kv, *gate = nullptr;
    };
    // The decoding state: packs, keys, values and gates of the source, and the tensors `texts`, which have one row for
    // each text. texts[0] is the recurrent state.
    struct KeptState : AttentionState {
        Kept pack, kv, gate;
        std::vector<Kept> texts;
        bool has_memory() override { return kv.tensor(); }
        void branch(Tape& tape, const Branches& b) override {
            for (Kept& each : texts) each.copy(tape, b.from_slots, b.to_slots);
        }
    };
    StateAttention(Parameters& parameters, const std::string& layer, const std::string& name,
                   const AttentionShape& shape, const StateRule& rule)
        : ProjectedAttention(name, shape), rule_(rule), output_(part(parameters, layer, "output", shape.width)) {}
    // Returns keys and values (Nk,2C). The keys are rotated by position and, if rotary_value is set, the values too.
    Tensor* keys_and_values(Tape& tape, const Linear& project, Tensor* x, Ints positions, Tensor* rotary_table,
                            const std::string& name) const {
        return project.rotated(tape, x, positions, rotary_table, (shape_.rotary_value ? 2 : 1) * shape_.width,
                               name + ".key_value");
    }
    virtual Tensor* read(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table) const = 0;
    // The paths of the tensors start with `name`.
    virtual Taken take(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table, const std::string& name) const = 0;

    // Adds to y, the result of the state, what a kind computes besides. q is the result of read(); kv are the values of
    // take(), one tensor per source.
    virtual Tensor* beside(Tape&, Tensor* y, Tensor* /*q*/, const std::vector<Tensor*>& /*kv*/,
                           const AttentionContext&) const {
        return y;
    }

    StateRule rule_;
    Linear output_;
};

}  // namespace masquerade
