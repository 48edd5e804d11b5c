// SPDX-License-Identifier: MIT
// Kernel attention:  y_i = sum_j (phi(q_i) . phi(k_j)) v_j / sum_j phi(q_i) . phi(k_j).  The kinds differ in the
// features phi, which each head computes from its query or key:
//
//     performer   FAVOR+, random features of exp(q . k / sqrt(D))                      Choromanski et al. 2020
//     rfa         random features of exp(-sum_d s_d^2 (q_d - k_d)^2 / 2). q and k have length 1; s is learned.
//                 With gate=true, each key reduces the weights of the keys before it.  Peng et al. 2021
//     linear      phi(x) = elu(x) + 1                                                  Katharopoulos et al. 2020
//
// If features are stored as logarithms, each feature has a running maximum over the keys, and the sums over the keys
// are stored relative to this maximum, to avoid overflow. The query adds the maximum back inside a softmax over the
// features (engine/math/state.h). Therefore y needs no epsilon. The maximum covers only keys that the query sees, so y
// does not depend on any other key.
#include <algorithm>

#include "engine/math/features.h"
#include "engine/nn/attention/state.h"

namespace masquerade {
namespace {

// The options of all kinds in this file. Each kind declares as settings only the options that it uses.
struct KernelOptions {
    FeatureKind map = FeatureKind::elu;
    int features = 64, redraw = 0;
    bool gate = false;
    void declare_features(AttentionSettings& s) {
        s.add("features", &features,
              "number of random features per head; the features of a query times those of a key approximate "
              "the weight of the key",
              1, 65536);
        s.add("redraw", &redraw,
              "steps until the random projections, from which the features are computed, are drawn again; "
              "0: never",
              0, 1000000000);
    }
};

struct PerformerOptions : KernelOptions {
    void declare(AttentionSettings& s) {
        // These words are the names of the first four values of FeatureKind, in the same order.
        static const std::vector<std::string> words = {"positive", "hyperbolic", "trigonometric", "relu"};
        std::string word = words[0];
        declare_features(s);
        s.add("feature_map", &word,
              "how a feature is computed from a random projection u: exp(u) (positive), exp(u) "
              "and exp(-u) (hyperbolic), sine and cosine (trigonometric), or max(u, 0) (relu)",
              words);
        map = FeatureKind(std::find(words.begin(), words.end(), word) - words.begin());
    }
};

struct RfaOptions : KernelOptions {
    void declare(AttentionSettings& s) {
        map = FeatureKind::rfa;
        declare_features(s);
        s.add("gate", &gate,
              "compute a number from 0 to 1 (a gate) from each row; it reduces the weight of all keys before this row");
    }
};

struct LinearOptions : KernelOptions {
    void declare(AttentionSettings&) {}
};

StateRule rule_of(const AttentionShape& s, const KernelOptions& o) {
    const FeatureKind map = o.map;
    const int R = map == FeatureKind::elu ? s.width / s.heads : features_of(map, o.features);
    // `floor` limits the absolute value of the divisor from below. With gates, the bound is `floor` itself; without
    // gates, it is `floor` times the number of keys. Features that are positive and negative may cancel in the divisor,
    // and division by nearly 0 amplifies their noise. The bound is larger for rfa, because rfa did not train with 1e-3:
    // its learned scale s can make the weights smaller than the noise of the features. The features of elu underflow if
    // q and k are far below 0; the bound then makes y 0 instead of 0 / 0, and changes no divisor above it.
    const double floor = map == FeatureKind::rfa             ? 0.05
                         : map == FeatureKind::trigonometric ? 1e-3
                         : map == FeatureKind::elu           ? 1e-30
                                                             : 0;
    return {
        s.heads,           R, is_logarithm(map) ? StatePack::exponential : o.gate ? StatePack::gated : StatePack::sum,
        StateRead::kernel, 1, floor};
}

class KernelAttention : public StateAttention {
  public:
    KernelAttention(const AttentionPlace& at, const KernelOptions& o)
        : StateAttention(at, rule_of(at.shape, o)), map_(o.map) {
        query_ = at.linear("query");
        key_ = at.linear("key");
        value_ = at.linear("value");
        if (rule_.pack == StatePack::gated) gate_ = at.linear("gate", shape_.heads);
        if (map_ == FeatureKind::elu) return;
        const std::string path = at.path + ".features";
        const auto make = [s = shape_, o, path](std::uint64_t seed, std::uint32_t draw) {
            return random_features(o.features, s.heads, s.width / s.heads, {}, seed, path, draw);
        };
        if (map_ == FeatureKind::rfa) sharpness_ = at.add("sharpness", {shape_.width}, {Init::ones});
        random_ = at.parameters.add_state(path, {o.features, shape_.width}, {Init::made, 0, make, o.redraw});
    }

  private:
    // Returns the R features of each of the H heads of x, or their logarithms: (N,H*R).
    Tensor* features(Tape& tape, Tensor* x, const std::string& name) const {
        const int H = shape_.heads;
        if (map_ == FeatureKind::elu)
            return feature_map(tape, convert(tape, x, arithmetic_of(tape.dtype), name + ".unrounded"), nullptr, H, 1,
                               map_, name);
        if (map_ == FeatureKind::rfa) x = normalise(tape, x, name + ".unit", H);
        const double scale = map_ == FeatureKind::rfa ? 1 : std::pow(double(shape_.width / H), -0.25);
        Tensor* w = convert(tape, random_, tape.dtype, name + ".random");
        if (sharpness_) w = scale_columns(tape, w, sharpness_, name + ".scaled");
        return feature_map(tape, head_scores(tape, x, w, H, scale, name + ".projections"), has_norm(map_) ? x : nullptr,
                           H, scale, map_, name);
    }
    Tensor* read(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table) const override {
        return features(tape, StateAttention::read(tape, x, positions, rotary_table), name_ + ".query_features");
    }
    Taken take(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table, const std::string& name) const override {
        Tensor* k = key_.rotated(tape, x, positions, rotary_table, shape_.width, name + ".key");
        Tensor* gate = gate_.weight ? linear_unrounded(tape, x, gate_.weight, gate_.bias, name + ".gate") : nullptr;
        Tensor* v = value_.rotated(tape, x, positions, shape_.rotary_value ? rotary_table : nullptr, shape_.width,
                                   name + ".value");
        return {features(tape, k, name + ".key_features"), v, gate};
    }

    FeatureKind map_;
    Linear key_, value_, gate_;
    // (features,C): random vectors of all heads. If `redraw` is not 0, the vectors are drawn again every `redraw`
    // steps.
    Tensor* random_ = nullptr;
    Tensor* sharpness_ = nullptr;  // (C): the learned scale s of rfa, which multiplies the random vectors
};

template <class Options>
constexpr AttentionKind row(const char* name, const char* what) {
    return kind_of<KernelAttention, Options>(name, what, true, false, state_refuses);
}

}  // namespace

const AttentionKind performer_kind =
    row<PerformerOptions>("performer", "a kernel of random features in place of exp(q.k)");
const AttentionKind rfa_kind = row<RfaOptions>("rfa", "random sines and cosines of normed queries and keys");
const AttentionKind linear_kind = row<LinearOptions>("linear", "a kernel of elu(x) + 1");

}  // namespace masquerade
