// SPDX-License-Identifier: MIT
// The table of the kinds of latents, and the classes of some of them. y is the input of a latent, z its sample.
//   vmf              mu = y / |y|, and z has the von Mises-Fisher distribution around mu. The prior is uniform on the
//                    sphere. The KL is constant unless kappa is learned
//   power_spherical  like vmf, but the density of z is proportional to (1 + mu.z)^kappa
//   gaussian         y holds mu, then log variances l; z = mu + exp(l/2) e with normal noise e; the prior is N(0, 1)
//   gaussian_chain   like gaussian, with a learned prior that depends on the samples of the latent layers below
//   flow             like gaussian, with a learned prior: N(0, 1) mapped by the inverse of a normalising flow
//   fsq              z = tanh y, with each number rounded to one of `levels` values; uniform prior, constant KL
//   vq               each group of numbers of y is replaced by its codebook's nearest row; uniform prior, constant KL
//   none             z = y: a plain auto-encoder without a prior
#include <algorithm>
#include <cmath>

#include "engine/base/named.h"
#include "models/latent/kinds.h"

namespace masquerade {
namespace {

class None : public Latent {
  public:
    using Latent::Latent;
    LatentSample sample(Tape&, Tensor* y, const LatentNoise*, int, const LatentSamples&) const override {
        return {y, y};
    }
    bool has_density() const override { return false; }
};

class OnSphere : public Latent {
  public:
    OnSphere(Parameters* p, const std::string& path, const LatentOptions& o, const Latent* before)
        : Latent(p, path, o, before),
          around_(before && before->options.size == o.size ? static_cast<const OnSphere*>(before)->around_
                                                           : made(o.kappa, 8)) {
        if (p && o.learn_kappa) change_ = p->add(path + ".log_kappa", {1}, {Init::zeros});
    }
    double out_deviation() const override { return 1; }
    LatentSample sample(Tape& tape, Tensor* y, const LatentNoise* noise, int layer,
                        const LatentSamples&) const override {
        LatentSample s;
        s.y = y;
        s.z = normalise(tape, y, "mean");  // (B,Z) the mean direction mu of each document
        const std::int64_t B = y->rows();
        // The KL and the cosines w between samples and their means are computed outside the tape, which therefore
        // cannot differentiate them. They enter the tape as linear functions of `zero` with the slopes d KL / d log
        // kappa and dw / d log kappa. `zero` is log kappa minus its current value, so its value is 0, and its gradient
        // is the gradient of log kappa.
        Tensor* zero = nullptr;
        if (change_) {
            const double now = -number_of(change_);
            zero = add(tape, change_, tape.constant("now", {1}, y->dtype, &now), "change");
            const Numbers kl(B, around().kl()), slope(B, around().kl_by_log_kappa());
            s.kl = moved(tape, kl, slope, zero, y, "kl");  // (B): a number per document
        }
        if (!noise) return s;
        Tensor* w = zero ? moved(tape, noise->w[layer], noise->w_by_log_kappa[layer], zero, y, "w")
                         : tape.constant("w", {B}, y->dtype, noise->w[layer].data());
        s.z = vmf_sample(tape, s.z, w, noise_of(tape, y, noise, layer, options.size), "z");
        return s;
    }
    void scale_noise(double share, float& w, float& w_by_log_kappa, float*) const override {
        const double angle = std::acos(std::clamp(double(w), -1.0, 1.0));
        w_by_log_kappa *= float(angle > 0 ? share * std::sin(share * angle) / std::sin(angle) : share * share);
        w = float(std::cos(share * angle));
    }
    const SphereDistribution* cosines() const override { return &around(); }
    double constant_kl() const override { return change_ ? 0 : around_->kl(); }
    double log_ratio(const double* z, const double* y, const double*) const override {
        double dot = 0, norm = 0;
        for (int i = 0; i < options.size; i++) {
            dot += z[i] * y[i];
            norm += y[i] * y[i];
        }
        return around().log_density(dot / std::max(std::sqrt(norm), 1e-6)) - around().log_uniform_density();
    }
    void project(double* z) const override {
        double largest = 0, square = 0;
        for (int i = 0; i < options.size; i++) largest = std::max(largest, std::abs(z[i]));
        if (largest == 0) return;  // no point is nearest
        // A power of 2 changes no bits of the result, and no square is then too large or too small for double.
        const int exponent = std::ilogb(largest);
        for (int i = 0; i < options.size; i++) z[i] = std::scalbn(z[i], -exponent);
        for (int i = 0; i < options.size; i++) square += z[i] * z[i];
        const double scale = 1 / std::sqrt(square);
        for (int i = 0; i < options.size; i++) z[i] *= scale;
    }
    // Interpolates along the great circle through a and b; if a and b are parallel, along a straight line.
    void between(const double* a, const double* b, double t, double* z) const override {
        double dot = 0;
        for (int i = 0; i < options.size; i++) dot += a[i] * b[i];
        const double angle = std::acos(std::clamp(dot, -1.0, 1.0));
        double from = 1 - t, to = t;
        if (std::sin(angle) > 1e-6) {
            from = std::sin((1 - t) * angle) / std::sin(angle);
            to = std::sin(t * angle) / std::sin(angle);
        }
        for (int i = 0; i < options.size; i++) z[i] = from * a[i] + to * b[i];
        project(z);
    }

  private:
    std::shared_ptr<const SphereDistribution> made(double kappa, int fineness) const {
        const SphereKind kind = options.kind == LatentKind::vmf ? SphereKind::vmf : SphereKind::power_spherical;
        return std::make_shared<const SphereDistribution>(options.size, kappa, kind, fineness);
    }
    // Returns the distribution for the current kappa. A learned kappa is at least e^-20 times and at most e^9 times
    // options.kappa, and never above the limit of SphereDistribution.
    const SphereDistribution& around() const {
        const double kappa = change_ ? std::min(options.kappa * std::exp(std::clamp(number_of(change_), -20.0, 9.0)),
                                                SphereDistribution::largest_kappa)
                                     : around_->kappa();
        if (kappa != around_->kappa()) around_ = made(kappa, 1);
        return *around_;
    }
    static double number_of(const Tensor* t) { return OnHost(t->view())[0]; }
    // Returns values + slopes * zero, (B). zero has the value 0 and the gradient of log kappa (see sample()).
    template <class Number>
    static Tensor* moved(Tape& tape, const std::vector<Number>& values, const std::vector<Number>& slopes, Tensor* zero,
                         const Tensor* y, const std::string& name) {
        const Shape shape{std::int64_t(values.size()), 1};
        Tensor* change =
            scale_columns(tape, tape.constant(name + ".slope", shape, y->dtype, slopes.data()), zero, name + ".change");
        return reshape(tape,
                       add(tape, tape.constant(name + ".now", shape, y->dtype, values.data()), change, name + ".sum"),
                       {shape[0]}, name);
    }

    mutable std::shared_ptr<const SphereDistribution> around_;
    // One number, log kappa - log options.kappa, before around() limits kappa; null if kappa is fixed.
    Tensor* change_ = nullptr;
};

}  // namespace

const std::vector<LatentKindRow>& latent_kinds() {
    constexpr auto kappa = LatentKindRow::kappa, kl = LatentKindRow::kl, kl_of_numbers = LatentKindRow::kl_of_numbers;
    constexpr auto any_prior = LatentKindRow::any_prior, fills_space = LatentKindRow::fills_space;
    constexpr auto noise = LatentKindRow::noise;
    static const std::vector<LatentKindRow> all = {
        {LatentKind::vmf, "vmf", "directions around the mean, kappa fixed", make_latent<OnSphere>, kappa | noise},
        {LatentKind::power_spherical, "power_spherical", "the same with weights (1 + cosine)^kappa",
         make_latent<OnSphere>, kappa | noise},
        {LatentKind::gaussian, "gaussian", "normal numbers, mean and variance learned", make_gaussian,
         kl | kl_of_numbers | any_prior | fills_space | noise},
        {LatentKind::gaussian_chain, "gaussian_chain", "the same, each layer's prior by the layers below",
         make_gaussian_chain, kl | kl_of_numbers | fills_space | noise},
        {LatentKind::flow, "flow", "normal numbers, with a prior that a flow makes", make_flow,
         kl | fills_space | noise},
        {LatentKind::fsq, "fsq", "numbers rounded to levels", make_levels},
        {LatentKind::vq, "vq", "rows of codebooks that follow what is near them", make_codes},
        {LatentKind::none, "none", "no noise: an auto-encoder", make_latent<None>, fills_space},
    };
    return all;
}

const LatentKindRow& find_latent(const std::string& name) { return find_named(latent_kinds(), name, "latent kind"); }

const LatentKindRow& row_of(LatentKind kind) { return latent_kinds().at(int(kind)); }

}  // namespace masquerade
