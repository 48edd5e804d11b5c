// SPDX-License-Identifier: MIT
// Attention through a bounded state (engine/math/state.h): what all kinds of it share. A kind says by what queries read
// the state, and what of a row the state takes up. Time and memory are linear in the rows, under every mask that is
// honoured.
#pragma once
#include "engine/nn/attention/attention.h"

namespace masquerade {

class StateAttention : public Attention {
  public:
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const Site& site) const override;
    // A cache keeps the rows themselves; a state takes them up when the first token is written.
    Tensor* kept(Tape&, Tensor* x, Ints, Tensor*, const char*) const override { return x; }
    int kept_columns() const override { return shape_.width; }
    int state_numbers() const override { return masquerade::state_numbers(shape_.width, rule_); }

  protected:
    // The part of rows x(Nk,C) that the state takes up: pack (Nk,H*R), kv (Nk,C) values or (Nk,2C) keys and values,
    // gate (Nk,H) logits, of gated packs.
    struct Taken {
        Tensor *pack, *kv, *gate = nullptr;
    };
    StateAttention(Parameters& parameters, const std::string& layer, const std::string& name,
                   const AttentionShape& shape, const StateRule& rule)
        : name_(name), shape_(shape), rule_(rule), output_(part(parameters, layer, "output", shape.width)) {}
    // A linear layer (columns,C) of this attention.
    Linear part(Parameters& p, const std::string& layer, const char* what, int columns) const {
        return Linear(p, layer + "." + name_ + "." + what, shape_.width, columns, shape_.deviation);
    }
    // (Nk,2C), where positions turn keys, and values if rotary_value says so.
    Tensor* keys_and_values(Tape& tape, const Linear& project, Tensor* x, Ints positions, Tensor* turns,
                            const std::string& name) const {
        return project.rotated(tape, x, positions, turns, (shape_.rotary_value ? 2 : 1) * shape_.width,
                               name + ".key_value");
    }
    virtual Tensor* read(Tape& tape, Tensor* x, Ints positions, Tensor* turns) const = 0;
    // Names of tensors start with `name`.
    virtual Taken take(Tape& tape, Tensor* x, Ints positions, Tensor* turns, const std::string& name) const = 0;

    // Adds to the read state y what a kind has beside it: q is from read(), kv from take() for each source.
    virtual Tensor* beside(Tape&, Tensor* y, Tensor* /*q*/, const std::vector<Tensor*>& /*kv*/, const Site&) const {
        return y;
    }

    std::string name_;
    AttentionShape shape_;
    StateRule rule_;

  private:
    Linear output_;
};

}  // namespace masquerade
