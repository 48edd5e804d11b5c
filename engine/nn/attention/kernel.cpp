// SPDX-License-Identifier: MIT
#include "engine/nn/attention/kernel.h"

namespace masquerade {
namespace {

FeatureKind map_of(const AttentionShape& s, KernelAttention::Kind kind) {
    using K = KernelAttention::Kind;
    return kind == K::performer ? s.options.feature_map : kind == K::rfa ? FeatureKind::rfa : FeatureKind::elu;
}

StateRule rule_of(const AttentionShape& s, KernelAttention::Kind kind) {
    const FeatureKind map = map_of(s, kind);
    const int R = kind == KernelAttention::Kind::linear ? s.width / s.heads : features_of(map, s.options.features);
    // Features of either sign may cancel, and a divisor near 0 multiplies what is left: so much a key holds it off. rfa's learned
    // scale makes weights smaller than the noise of its features: with 1e-3 it did not train.
    const double floor = map == FeatureKind::rfa ? 0.05 : map == FeatureKind::trigonometric ? 1e-3 : 0;
    const bool gated = kind == KernelAttention::Kind::rfa && s.options.gate;
    return {s.heads, R, is_logarithm(map) ? StatePack::exponential : gated ? StatePack::gated : StatePack::sum, StateRead::kernel, 1, floor};
}

}  // namespace

KernelAttention::KernelAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s, Kind kind)
    : StateAttention(p, layer, name, s, rule_of(s, kind)),
      kind_(kind),
      map_(map_of(s, kind)),
      query_(part(p, layer, "query", s.width)),
      key_(part(p, layer, "key", s.width)),
      value_(part(p, layer, "value", s.width)) {
    if (rule_.pack == StatePack::gated) gate_ = part(p, layer, "gate", s.heads);
    if (kind == Kind::linear) return;
    const std::string path = layer + "." + name + ".features";
    const auto make = [s, path](std::uint64_t seed, std::uint32_t draw) {
        return random_features(s.options.features, s.heads, s.width / s.heads, {}, seed, path, draw);
    };
    if (kind == Kind::rfa) sharpness_ = p.add(layer + "." + name + ".sharpness", {s.width}, {Init::ones});
    random_ = p.add_state(path, {s.options.features, s.width}, {Init::made, 0, make, s.options.redraw});
}

// Features of the heads of x, or their logarithms.
Tensor* KernelAttention::features(Tape& tape, Tensor* x, const std::string& name) const {
    const int H = shape_.heads;
    if (kind_ == Kind::linear) return feature_map(tape, convert(tape, x, arithmetic_of(tape.dtype), name + ".unrounded"), nullptr, H, 1, map_, name);
    if (kind_ == Kind::rfa) x = normalise(tape, x, name + ".unit", H);
    const double scale = kind_ == Kind::rfa ? 1 : std::pow(double(shape_.width / H), -0.25);
    Tensor* w = convert(tape, random_, tape.dtype, name + ".random");
    if (sharpness_) w = scale_columns(tape, w, sharpness_, name + ".scaled");
    return feature_map(tape, head_scores(tape, x, w, H, scale, name + ".projections"), has_norm(map_) ? x : nullptr, H, scale, map_, name);
}

Tensor* KernelAttention::read(Tape& tape, Tensor* x, Ints positions, Tensor* turns) const {
    return features(tape, query_.rotated(tape, x, positions, turns, shape_.width, name_ + ".query"), name_ + ".query_features");
}

StateAttention::Taken KernelAttention::take(Tape& tape, Tensor* x, Ints positions, Tensor* turns, const std::string& name) const {
    Tensor* k = key_.rotated(tape, x, positions, turns, shape_.width, name + ".key");
    Tensor* gate = gate_.weight ? linear_unrounded(tape, x, gate_.weight, gate_.bias, name + ".gate") : nullptr;
    return {features(tape, k, name + ".key_features"), value_(tape, x, name + ".value"), gate};
}

}  // namespace masquerade
