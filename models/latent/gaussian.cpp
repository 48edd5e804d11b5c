// SPDX-License-Identifier: MIT
// Gaussian latents with a fixed prior, or with a learned prior per layer. y holds the means mu, then the log variances
// l. All log variances are clamped to [-8, 8]. e is normal noise.
//   gaussian        z = mu + exp(l/2) e, with the prior N(0, 1)                                Kingma & Welling 2013
//                   or, with source_prior, a prior that depends on the source of a pair           Sohn et al. 2015
//   gaussian_chain  like gaussian, but each layer's prior depends on the samples of the latent layers below
//                                                                                            Hu et al. 2022 (DELLA)
#include <algorithm>
#include <cmath>

#include "models/latent/kinds.h"

namespace masquerade {
namespace {

class Gaussian : public Latent {
  public:
    using Latent::Latent;
    int inputs() const override { return 2 * options.size; }
    LatentSample sample(Tape& tape, Tensor* y, const LatentNoise* noise, int layer,
                        const LatentSamples&) const override {
        return around(tape, y, nullptr, noise, layer);
    }
    void use_prior(Tape& tape, LatentSample& s, Tensor* prior) const override {
        s.prior = prior;
        s.kl = gaussian_kl(tape, s.y, prior, "kl");  // (B): a number per document
        if (options.free_bits > 0 && options.free_bits_of == "number")
            s.kls = gaussian_kl(tape, s.y, prior, "kls", true);  // (B,Z): the KL of each number of z
    }
    double log_ratio(const double* z, const double* y, const double* prior) const override {
        double sum = 0;
        for (int i = 0; i < options.size; i++) {
            const double l = std::clamp(y[options.size + i], -8.0, 8.0), d = z[i] - y[i];
            const double p = prior ? std::clamp(prior[options.size + i], -8.0, 8.0) : 0,
                         above = prior ? z[i] - prior[i] : z[i];
            sum += 0.5 * (above * above * std::exp(-p) + p - d * d * std::exp(-l) - l);
        }
        return sum;
    }

  protected:
    // Samples from the posterior. A row of y holds the posterior's means, then its log variances. A row of `prior`
    // holds the prior's means, then its log variances; if `prior` is null, the prior is N(0, 1).
    LatentSample around(Tape& tape, Tensor* y, Tensor* prior, const LatentNoise* noise, int layer) const {
        LatentSample s;
        s.y = y;
        if (!options.source_prior) use_prior(tape, s, prior);
        s.z = gaussian_sample(tape, y, noise_of(tape, y, noise, layer, options.size), "z");
        return s;
    }
};

// The prior of a layer is a Gaussian that depends on the samples of the latent layers below (Hu et al. 2022). The prior
// of latent layer 0 is N(0, 1). In layer l > 0, the prior has the mean m and the log variance p. They are computed from
// the sample z_(l-1) and a hidden state r_l, with linear maps W, U and V; r_0 = 0:
//   r_l = tanh(W z_(l-1) + U r_(l-1)),   (m, p) = V r_l,   z_l ~ N(m, exp p)
class GaussianChain : public Gaussian {
  public:
    GaussianChain(Parameters* p, const std::string& path, const LatentOptions& o, const Latent* before)
        : Gaussian(p, path, o, before), before_(p ? static_cast<const GaussianChain*>(before) : nullptr) {
        if (!before_) return;
        const double deviation = 1 / std::sqrt(before->options.size);
        from_z_ = Linear(*p, path + ".prior.z", before->options.size, o.size, deviation);
        if (before_->before_) from_r_ = Linear(*p, path + ".prior.r", before->options.size, o.size, deviation);
        out_ = Linear(*p, path + ".prior.out", o.size, 2 * o.size, 0.02);
    }
    LatentSample sample(Tape& tape, Tensor* y, const LatentNoise* noise, int layer,
                        const LatentSamples& below) const override {
        if (!before_) return around(tape, y, nullptr, noise, layer);
        const LatentSample& last = below.at(layer - 1);
        Tensor* r = product(tape, last.z, from_z_, "prior.z");
        if (last.chain) r = add(tape, r, product(tape, last.chain, from_r_, "prior.r"), "prior.sum");
        r = tanh(tape, r, "prior.tanh");  // (B,Z): Z numbers per document
        LatentSample s = around(tape, y, product(tape, r, out_, "prior"), noise, layer);
        s.chain = r;
        return s;
    }
    void draw(double* z) const override {
        if (!before_) return;
        const Numbers prior = affine(out_.weight, out_.bias, kept(z - before_->options.size));
        for (int i = 0; i < options.size; i++)
            z[i] = prior[i] + std::exp(std::clamp(prior[options.size + i], -8.0, 8.0) / 2) * z[i];
    }

  private:
    static Tensor* product(Tape& tape, Tensor* x, const Linear& by, const std::string& name) {
        return linear_unrounded(tape, convert(tape, x, tape.dtype, name + ".stored"), by.weight, by.bias, name);
    }
    // Returns the hidden state r_l of this layer, from which the prior is computed. `z` points to the latent of the
    // layer below. In memory, the latents of all lower layers must lie directly before it, the lowest layer first.
    Numbers kept(const double* z) const {
        Numbers r = affine(from_z_.weight, from_z_.bias, {z, z + before_->options.size});
        if (before_->before_) {
            const Numbers more =
                affine(from_r_.weight, from_r_.bias, before_->kept(z - before_->before_->options.size));
            for (std::size_t i = 0; i < r.size(); i++) r[i] += more[i];
        }
        for (double& x : r) x = std::tanh(x);
        return r;
    }

    const GaussianChain* before_;
    Linear from_z_, from_r_, out_;
};

}  // namespace

const MakeLatent make_gaussian = make_latent<Gaussian>, make_gaussian_chain = make_latent<GaussianChain>;

}  // namespace masquerade
