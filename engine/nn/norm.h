// SPDX-License-Identifier: MIT
// The norms of Transformer layers. Each kind is a class and an entry in norm_kinds(). Layers and models use only the
// interface Norm.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/functions.h"
#include "engine/nn/parameters.h"

namespace masquerade {

class Norm {
  public:
    virtual ~Norm() = default;
    // Returns x (N,C) with each row normalised.
    virtual Tensor* operator()(Tape& tape, Tensor* x, const std::string& name) const = 0;
    // Returns x + dropout(f) with each row normalised. `rate` is the dropout rate.
    virtual Tensor* operator()(Tape& tape, Tensor* x, Tensor* f, const RowNames& rows, float rate,
                               const ResidualNames& names) const {
        return (*this)(tape, add(tape, x, dropout(tape, f, rows, rate, names.dropout), names.sum), names.norm);
    }
};

struct NormKind {
    const char *name, *what;
    // Declares the parameters, whose paths are `path` followed by .weight and, for the kind "layer", also by .bias.
    std::unique_ptr<const Norm> (*make)(Parameters& parameters, const std::string& path, int width, double eps);
};
const std::vector<NormKind>& norm_kinds();
// Throws BadUsage if no kind has this name; the message lists all names.
const NormKind& find_norm(const std::string& name);

// Normalises each row to mean 0 and variance 1, then multiplies by `weight` and adds `bias`. Ba et al. 2016
struct LayerNorm : Norm {
    Tensor *weight = nullptr, *bias = nullptr;  // (C) each: one number per column
    double eps = 0;
    LayerNorm() = default;
    LayerNorm(Parameters& p, const std::string& path, int width, double epsilon)
        : weight(p.add(path + ".weight", {width}, {Init::ones})),
          bias(p.add(path + ".bias", {width}, {Init::zeros})),
          eps(epsilon) {}
    Tensor* operator()(Tape& tape, Tensor* x, const std::string& name) const override {
        return layernorm(tape, x, weight, bias, eps, name);
    }
    Tensor* operator()(Tape& tape, Tensor* x, Tensor* f, const RowNames& rows, float rate,
                       const ResidualNames& names) const override {
        return residual_norm(tape, x, f, rows, rate, weight, bias, eps, names);
    }
};

}  // namespace masquerade
