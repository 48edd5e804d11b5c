// SPDX-License-Identifier: MIT
#include "engine/nn/feed_forward.h"

#include "engine/base/named.h"
#include "engine/tape/op_record.h"

namespace masquerade {

Tensor* silu(Tape& t, Tensor* x, const std::string& name) { return run_op(t, name, silu_forward, silu_backward, {x}); }

Tensor* squared_relu(Tape& t, Tensor* x, const std::string& name) {
    return run_op(t, name, squared_relu_forward, squared_relu_backward, {x});
}

Tensor* glu(Tape& t, Tensor* x, GateKind kind, const std::string& name) {
    return run_op(t, name, glu_forward, glu_backward, {x}, kind);
}

namespace {

struct TwoLayers : FeedForward {
    FeedForwardShape shape;
    Linear up, down;
    // `up` returns parts * s.inner columns. `parts` is 2 if half of the columns are a gate.
    TwoLayers(Parameters& p, const std::string& path, const FeedForwardShape& s, int parts = 1)
        : shape(s),
          up(p, path + ".up", s.width, parts * s.inner, s.deviation, s.bias),
          down(p, path + ".down", s.inner, s.width, s.deviation, s.bias) {}
};

// Computes gelu(x W + b) V + c with `up` (W, b) and `down` (V, c).     Hendrycks & Gimpel 2016; Devlin et al. 2018
struct GeluFeedForward : TwoLayers {
    using TwoLayers::TwoLayers;
    Tensor* operator()(Tape& tape, Tensor* x) const override {
        // inner.u and inner.a are (N,F), where F is shape.inner.
        const Activation inner = linear_gelu(tape, x, up.weight, up.bias, shape.gelu, "ffn.up", "ffn.gelu");
        return gelu_linear(tape, inner, down.weight, down.bias, "ffn.down");
    }
};

// Computes max(x W + b, 0)^2 V + c with `up` (W, b) and `down` (V, c).                             So et al. 2021
struct SquaredReluFeedForward : TwoLayers {
    using TwoLayers::TwoLayers;
    Tensor* operator()(Tape& tape, Tensor* x) const override {
        return down(tape, squared_relu(tape, up(tape, x, "ffn.up"), "ffn.relu2"), "ffn.down");
    }
};

// Computes (g(x W + b) * (x U + d)) V + c with `down` (V, c), where * multiplies elementwise and `gate` names the
// activation g. If `kind` is gelu, s.gelu says whether g is the exact gelu or its tanh approximation. `up` computes
// x W + b and x U + d side by side; its weight (2F,C) holds W^T, then U^T.
//                                                                                                     Shazeer 2020
struct GatedFeedForward : TwoLayers {
    GateKind gate;
    GatedFeedForward(Parameters& p, const std::string& path, const FeedForwardShape& s, GateKind kind)
        : TwoLayers(p, path, s, 2),
          gate(kind == GateKind::gelu && s.gelu == GeluKind::tanh ? GateKind::gelu_tanh : kind) {}
    Tensor* operator()(Tape& tape, Tensor* x) const override {
        return down(tape, glu(tape, up(tape, x, "ffn.up"), gate, "ffn.glu"), "ffn.down");
    }
};

template <class Class, auto... gate>
std::unique_ptr<const FeedForward> make(Parameters& p, const std::string& path, const FeedForwardShape& s) {
    return std::make_unique<Class>(p, path, s, gate...);
}

Tensor* activate_gelu(Tape& tape, Tensor* x, GeluKind kind) { return gelu(tape, x, kind, "gelu"); }
Tensor* activate_silu(Tape& tape, Tensor* x, GeluKind) { return silu(tape, x, "silu"); }
Tensor* activate_squared_relu(Tape& tape, Tensor* x, GeluKind) { return squared_relu(tape, x, "relu2"); }

}  // namespace

const std::vector<FeedForwardKind>& feed_forward_kinds() {
    static const std::vector<FeedForwardKind> all = {
        {"gelu", "gelu between two linear layers", make<GeluFeedForward>, activate_gelu},
        {"swiglu", "a gate by silu, times a linear layer", make<GatedFeedForward, GateKind::silu>, activate_silu},
        {"geglu", "a gate by gelu, times a linear layer", make<GatedFeedForward, GateKind::gelu>, activate_gelu},
        {"relu2", "the square of relu between two linear layers", make<SquaredReluFeedForward>, activate_squared_relu}};
    return all;
}

const FeedForwardKind& find_feed_forward(const std::string& name) {
    return find_named(feed_forward_kinds(), name, "ffn");
}

}  // namespace masquerade
