// SPDX-License-Identifier: MIT
// The kinds of latents, and the table of them.
//   vmf       mu = y / |y|, z ~ vMF(mu, kappa) with kappa fixed, prior uniform on the sphere: KL is a constant
//   gaussian  y = mu | log variance, z = mu + exp(log variance / 2) e, prior N(0, 1)
//   none      z = y: the plain auto-encoder (UniAE)
#include <algorithm>
#include <cmath>

#include "models/latent/latent.h"
#include "models/latent/vmf.h"

namespace masquerade {
namespace {

Tensor* noise_of(Tape& tape, const Tensor* y, const std::vector<float>& e, int Z) {
    return tape.constant("e", {y->rows(), Z}, y->dtype, e.data());
}

class None : public Latent {
  public:
    using Latent::Latent;
    LatentSample sample(Tape&, Tensor* y, const LatentNoise*, int, const std::vector<LatentSample>&) const override {
        return {y, y};
    }
    bool has_density() const override { return false; }
};

class Gaussian : public Latent {
  public:
    using Latent::Latent;
    int inputs() const override { return 2 * options.size; }
    LatentSample sample(Tape& tape, Tensor* y, const LatentNoise* noise, int layer,
                        const std::vector<LatentSample>&) const override {
        const int Z = options.size;
        LatentSample s;
        s.y = y;
        s.kl = gaussian_kl(tape, y, "kl");  // (B)
        // The mean path is a sample without noise.
        const std::vector<float> zero(noise ? 0 : std::size_t(y->rows() * Z), 0.f);
        s.z = gaussian_sample(tape, y, noise_of(tape, y, noise ? noise->e[std::size_t(layer)] : zero, Z), "z");
        return s;
    }
    double log_ratio(const double* z, const double* y) const override {
        double sum = 0;
        for (int i = 0; i < options.size; i++) {
            double l = std::clamp(y[options.size + i], -8.0, 8.0), d = z[i] - y[i];
            sum += 0.5 * (z[i] * z[i] - d * d * std::exp(-l) - l);
        }
        return sum;
    }
};

class Vmf : public Latent {
  public:
    Vmf(const LatentOptions& o, const Latent* before)
        : Latent(o),
          vmf_(before ? static_cast<const Vmf*>(before)->vmf_
                      : std::make_shared<const VonMisesFisher>(o.size, o.kappa)) {}
    double out_deviation() const override { return 1; }
    LatentSample sample(Tape& tape, Tensor* y, const LatentNoise* noise, int layer,
                        const std::vector<LatentSample>&) const override {
        LatentSample s;
        s.y = y;
        s.z = normalise(tape, y, "mean");  // (B,Z)
        if (!noise) return s;
        Tensor* w = tape.constant("w", {y->rows()}, y->dtype, noise->w[std::size_t(layer)].data());
        s.z = vmf_sample(tape, s.z, w, noise_of(tape, y, noise->e[std::size_t(layer)], options.size), "z");
        return s;
    }
    double radial(double u) const override { return vmf_->quantile(u); }
    double constant_kl() const override { return vmf_->kl(); }
    double log_ratio(const double* z, const double* y) const override {
        double dot = 0, norm = 0;
        for (int i = 0; i < options.size; i++) {
            dot += z[i] * y[i];
            norm += y[i] * y[i];
        }
        return vmf_->log_density(dot / std::max(std::sqrt(norm), 1e-6)) - vmf_->log_uniform_density();
    }
    void project(double* z) const override {
        double square = 0;
        for (int i = 0; i < options.size; i++) square += z[i] * z[i];
        const double scale = 1 / std::max(std::sqrt(square), 1e-6);
        for (int i = 0; i < options.size; i++) z[i] *= scale;
    }
    // Along the great circle.
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
    std::shared_ptr<const VonMisesFisher> vmf_;
};

using Made = std::shared_ptr<const Latent>;
template <class Kind>
Made make(Parameters*, const std::string&, const LatentOptions& o, const Latent*) {
    return std::make_shared<Kind>(o);
}
Made make_vmf(Parameters*, const std::string&, const LatentOptions& o, const Latent* before) {
    return std::make_shared<Vmf>(o, before);
}

}  // namespace

const std::vector<LatentKindRow>& latent_kinds() {
    static const std::vector<LatentKindRow> all = {
        {LatentKind::vmf, "vmf", "directions around the mean, kappa fixed", make_vmf},
        {LatentKind::gaussian, "gaussian", "normal numbers, mean and variance learned", make<Gaussian>},
        {LatentKind::none, "none", "no noise: an auto-encoder", make<None>},
    };
    return all;
}

const LatentKindRow& row_of(LatentKind kind) {
    for (const LatentKindRow& row : latent_kinds())
        if (row.kind == kind) return row;
    throw Error(text("latent kind ", int(kind), " has no row in latent_kinds()"));
}

}  // namespace masquerade
