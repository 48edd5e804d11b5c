// SPDX-License-Identifier: MIT
// Kernel attention:  y_i = sum_j (phi(q_i) . phi(k_j)) v_j / sum_j phi(q_i) . phi(k_j),  by features phi of a head:
//
//     performer   FAVOR+, random features of exp(q . k / sqrt(D))                      Choromanski et al. 2020
//     rfa         random features of exp(sum_d s_d^2 q_d k_d), q and k of length 1, s learned;
//                 gate=true: keys fade                                                 Peng et al. 2021
//     linear      elu(x) + 1                                                           Katharopoulos et al. 2020
//
// Logarithms of features go into the state with a running maximum for each, which cancels: no epsilon, no look ahead.
#include "engine/nn/attention/kinds.h"
#include "engine/nn/attention/state.h"

namespace masquerade {
namespace {

enum class Kernel { performer, rfa, linear };

FeatureKind map_of(const AttentionShape& s, Kernel kind) {
    return kind == Kernel::performer ? s.options.feature_map
           : kind == Kernel::rfa     ? FeatureKind::rfa
                                     : FeatureKind::elu;
}

StateRule rule_of(const AttentionShape& s, Kernel kind) {
    const FeatureKind map = map_of(s, kind);
    const int R = kind == Kernel::linear ? s.width / s.heads : features_of(map, s.options.features);
    // Features of either sign may cancel, and a divisor near 0 multiplies what is left: so much a key holds it off.
    // rfa's learned scale makes weights smaller than the noise of its features: with 1e-3 it did not train.
    const double floor = map == FeatureKind::rfa ? 0.05 : map == FeatureKind::trigonometric ? 1e-3 : 0;
    const bool gated = kind == Kernel::rfa && s.options.gate;
    return {
        s.heads,           R, is_logarithm(map) ? StatePack::exponential : gated ? StatePack::gated : StatePack::sum,
        StateRead::kernel, 1, floor};
}

class KernelAttention : public StateAttention {
  public:
    KernelAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s,
                    Kernel kind)
        : StateAttention(p, layer, name, s, rule_of(s, kind)),
          kind_(kind),
          map_(map_of(s, kind)),
          query_(part(p, layer, "query", s.width)),
          key_(part(p, layer, "key", s.width)),
          value_(part(p, layer, "value", s.width)) {
        if (rule_.pack == StatePack::gated) gate_ = part(p, layer, "gate", s.heads);
        if (kind == Kernel::linear) return;
        const std::string path = layer + "." + name + ".features";
        const auto make = [s, path](std::uint64_t seed, std::uint32_t draw) {
            return random_features(s.options.features, s.heads, s.width / s.heads, {}, seed, path, draw);
        };
        if (kind == Kernel::rfa) sharpness_ = p.add(layer + "." + name + ".sharpness", {s.width}, {Init::ones});
        random_ = p.add_state(path, {s.options.features, s.width}, {Init::made, 0, make, s.options.redraw});
    }

  private:
    // Features of the heads of x, or their logarithms: (N,H*R).
    Tensor* features(Tape& tape, Tensor* x, const std::string& name) const {
        const int H = shape_.heads;
        if (kind_ == Kernel::linear)
            return feature_map(tape, convert(tape, x, arithmetic_of(tape.dtype), name + ".unrounded"), nullptr, H, 1,
                               map_, name);
        if (kind_ == Kernel::rfa) x = normalise(tape, x, name + ".unit", H);
        const double scale = kind_ == Kernel::rfa ? 1 : std::pow(double(shape_.width / H), -0.25);
        Tensor* w = convert(tape, random_, tape.dtype, name + ".random");
        if (sharpness_) w = scale_columns(tape, w, sharpness_, name + ".scaled");
        return feature_map(tape, head_scores(tape, x, w, H, scale, name + ".projections"), has_norm(map_) ? x : nullptr,
                           H, scale, map_, name);
    }
    Tensor* read(Tape& tape, Tensor* x, Ints positions, Tensor* turns) const override {
        return features(tape, query_.rotated(tape, x, positions, turns, shape_.width, name_ + ".query"),
                        name_ + ".query_features");
    }
    Taken take(Tape& tape, Tensor* x, Ints positions, Tensor* turns, const std::string& name) const override {
        Tensor* k = key_.rotated(tape, x, positions, turns, shape_.width, name + ".key");
        Tensor* gate = gate_.weight ? linear_unrounded(tape, x, gate_.weight, gate_.bias, name + ".gate") : nullptr;
        Tensor* v =
            value_.rotated(tape, x, positions, shape_.rotary_value ? turns : nullptr, shape_.width, name + ".value");
        return {features(tape, k, name + ".key_features"), v, gate};
    }

    Kernel kind_;
    FeatureKind map_;
    Linear query_, key_, value_, gate_;
    Tensor* random_ = nullptr;     // (features,C) w_r of every head, perhaps drawn anew every so many steps
    Tensor* sharpness_ = nullptr;  // (C) s of rfa: its random rows are s w_r
};

}  // namespace

const MakeAttention make_performer = made_as<KernelAttention, Kernel::performer>;
const MakeAttention make_rfa = made_as<KernelAttention, Kernel::rfa>;
const MakeAttention make_linear = made_as<KernelAttention, Kernel::linear>;

}  // namespace masquerade
