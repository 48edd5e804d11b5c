// SPDX-License-Identifier: MIT
// Layers: parameters, and a forward that reads like the paper. A layer owns nothing; its tensors are named slices of
// the model's Parameters, and one layer may be called any number of times in a step.
#pragma once
#include "engine/nn/functions.h"
#include "engine/nn/parameters.h"

namespace masquerade {

struct Linear {
    Tensor *weight = nullptr, *bias = nullptr;  // (O,I), (O)
    Linear() = default;
    Linear(Parameters& p, const std::string& path, int in, int out, double deviation)
        : weight(p.add(path + ".weight", {out, in}, {Init::normal, deviation})),
          bias(p.add(path + ".bias", {out}, {Init::zeros})) {}
    Tensor* operator()(Tape& tape, Tensor* x, const std::string& name) const {
        return linear(tape, x, weight, bias, name);
    }
    // The same, its first `columns` columns rotated to the positions of the rows where there is a table of turns.
    Tensor* rotated(Tape& tape, Tensor* x, Ints positions, Tensor* turns, int columns, const std::string& name) const {
        return turns ? linear_rotary(tape, x, weight, bias, positions, turns, columns, name) : (*this)(tape, x, name);
    }
};

struct LayerNorm {
    Tensor *weight, *bias;  // (C)
    double eps;
    LayerNorm() = default;
    LayerNorm(Parameters& p, const std::string& path, int width, double epsilon)
        : weight(p.add(path + ".weight", {width}, {Init::ones})),
          bias(p.add(path + ".bias", {width}, {Init::zeros})),
          eps(epsilon) {}
    Tensor* operator()(Tape& tape, Tensor* x, const std::string& name) const {
        return layernorm(tape, x, weight, bias, eps, name);
    }
    // The layer norm of x + dropout(f).
    Tensor* operator()(Tape& tape, Tensor* x, Tensor* f, const RowNames& rows, float rate,
                       const ResidualNames& names) const {
        return residual_norm(tape, x, f, rows, rate, weight, bias, eps, names);
    }
};

}  // namespace masquerade
