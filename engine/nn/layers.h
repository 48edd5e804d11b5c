// SPDX-License-Identifier: MIT
// The linear layer. It owns no memory: its tensors are named slices of the model's Parameters. A layer may be called
// any number of times in a step.
#pragma once
#include "engine/nn/functions.h"
#include "engine/nn/norm.h"
#include "engine/nn/parameters.h"

namespace masquerade {

struct Linear {
    Tensor *weight = nullptr, *bias = nullptr;  // (out,in) and (out); a layer without bias has a null bias
    Linear() = default;
    Linear(Parameters& p, const std::string& path, int in, int out, double deviation, bool with_bias = true)
        : weight(p.add(path + ".weight", {out, in}, {Init::normal, deviation})),
          bias(with_bias ? p.add(path + ".bias", {out}, {Init::zeros}) : nullptr) {}
    Tensor* operator()(Tape& tape, Tensor* x, const std::string& name) const {
        return linear(tape, x, weight, bias, name);
    }
    // Like operator(). If rotary_table is not null, also rotates the first `columns` columns of row n of the result by
    // the angles of the position positions[n].
    Tensor* rotated(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table, int columns,
                    const std::string& name) const {
        return rotary_table ? linear_rotary(tape, x, weight, bias, positions, rotary_table, columns, name)
                            : (*this)(tape, x, name);
    }
};

}  // namespace masquerade
