// SPDX-License-Identifier: MIT
// The base class of the kinds of attention that use a state of bounded size (engine/math/state.h). A kind defines two
// functions: read() computes the vector with which a query reads the state, and take() computes what the state
// absorbs from a key row. Time and memory are linear in the number of rows, under every mask that the kind accepts.
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
    // Tensors that the state absorbs from Nk key rows. `pack` (Nk,H*R) says how much of each key the R slots of each of
    // the H heads absorb. If StateRule::pack is StatePack::pair, the shape of `pack` is (Nk,H*2R). `kv` holds values
    // (Nk,C), or keys and values (Nk,2C). `gate` (Nk,H) holds the logits of the gates; it is null unless
    // StateRule::pack is StatePack::gated.
    struct Taken {
        Tensor *pack, *kv, *gate = nullptr;
    };
    // The decoding state. `pack`, `kv` and `gate` are what take() returned for the memory, that is, the rows that were
    // read before the first step (a source text, latents or the encoder's rows). Each tensor in `per_text` has one row
    // for each generated text: first the states of bounded size, then what a kind adds (lambda.cpp).
    struct KeptState : AttentionState {
        Kept pack, kv, gate;
        std::vector<Kept> per_text;
        bool has_memory() override { return kv.tensor(); }
        void branch(Tape& tape, const Branches& b) override {
            for (Kept& each : per_text) each.copy(tape, b.from_slots, b.to_slots);
        }
    };
    StateAttention(const AttentionPlace& at, const StateRule& rule)
        : ProjectedAttention(at), rule_(rule), output_(at.linear("output")) {}
    // Returns keys and values (Nk,2C). If rotary_table is not null, rotates the keys and, if rotary_value is true,
    // also the values.
    Tensor* keys_and_values(Tape& tape, const Linear& project, Tensor* x, Ints positions, Tensor* rotary_table,
                            const std::string& name) const {
        return project.rotated(tape, x, positions, rotary_table, (shape_.rotary_value ? 2 : 1) * shape_.width,
                               name + ".key_value");
    }
    // Computes the vectors with which the query rows x read the state: by default, the rotated queries.
    virtual Tensor* read(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table) const {
        return query_.rotated(tape, x, positions, rotary_table, shape_.width, name_ + ".query");
    }
    // Computes what the state absorbs from the key rows x. The paths of the new tensors begin with `name`.
    virtual Taken take(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table, const std::string& name) const = 0;

    // Returns y, which the queries have read from the state, plus what the kind computes without the state, such as the
    // local positional lambda. q is the result of read(), and kv lists Taken::kv of each key source.
    virtual Tensor* beside(Tape&, Tensor* y, Tensor* /*q*/, const std::vector<Tensor*>& /*kv*/,
                           const AttentionContext&) const {
        return y;
    }

    StateRule rule_;
    Linear output_, query_;  // the kinds declare the parameters of query_, because their order differs
};

}  // namespace masquerade
