// SPDX-License-Identifier: MIT
// A normalising flow f as a model of vectors x: p(x) = N(f(x); 0, 1) |det df/dx|.
#pragma once
#include "engine/nn/functions.h"
#include "models/latent/flow_steps.h"

namespace masquerade {

struct FlowNetOptions {
    int columns = 2;  // D, the length of a vector x
    FlowOptions flow;
};

class FlowNet {
  public:
    FlowNet(Parameters& parameters, const FlowNetOptions& o)
        : options(o), steps(parameters, "flow", o.columns, o.flow) {}

    // Returns (B): -log p of each row of x(B,D) in nats, without the additive constant D/2 log 2 pi (constant()).
    Tensor* losses(Tape& tape, Tensor* x) const {
        auto scope = tape.scope("steps");
        const FlowSteps::Mapped f = steps(tape, x);
        // flow_kl() returns log q - log p, both without the constant D/2 log 2 pi. Here, q is a normal distribution
        // with variance 1 and its noise e is 0, so log q without the constant is 0. The result is therefore -log p.
        const Numbers zeros(2 * x->shape.count(), 0);
        Tensor* q = tape.constant("q", {x->rows(), 2 * x->columns()}, x->dtype, zeros.data());
        Tensor* e = tape.constant("e", x->shape, x->dtype, zeros.data());
        return flow_kl(tape, q, e, f.u, f.log_dets, f.log_det, "losses");
    }
    double constant() const { return options.columns * 0.91893853320467274178; }  // D/2 log 2 pi, D = columns

    const FlowNetOptions options;
    FlowSteps steps;
};

}  // namespace masquerade
