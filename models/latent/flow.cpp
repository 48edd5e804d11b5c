// SPDX-License-Identifier: MIT
// Gaussian latents whose prior is a normalising flow f: if z is a sample of the prior, f(z) is a sample of N(0, 1).
// y holds the means mu of q(z | y), then the log variances l. In the formulas, l is clamped to [-8, 8], and e is normal
// noise. latent.h describes the functions.
//   z = mu + exp(l/2) e,   log p(z) = log N(f(z); 0, 1) + log |det df/dz|
#include <algorithm>
#include <cmath>

#include "models/latent/kinds.h"

namespace masquerade {
namespace {

class Flow : public Latent {
  public:
    Flow(Parameters* p, const std::string& path, const LatentOptions& o, const Latent* before)
        : Latent(p, path, o, before) {
        if (p) steps_ = FlowSteps(*p, path + ".flow", o.size, o.flow);
    }
    int inputs() const override { return 2 * options.size; }
    LatentSample sample(Tape& tape, Tensor* y, const LatentNoise* noise, int layer,
                        const LatentSamples&) const override {
        Tensor* e = noise_of(tape, y, noise, layer, options.size);
        LatentSample s;
        s.y = y;
        s.z = gaussian_sample(tape, y, e, "z");  // (B,Z): Z numbers per document
        const FlowSteps::Mapped f = steps_(tape, s.z);
        s.kl = flow_kl(tape, y, e, f.u, f.log_dets, f.log_det, "kl");  // (B), an estimate from the sample z
        return s;
    }
    double log_ratio(const double* z, const double* y, const double*) const override {
        double log_det = 0, log_p = 0;
        for (double u : steps_.forward({z, z + options.size}, log_det)) log_p -= u * u / 2;
        return log_posterior(z, y) - log_p - log_det;
    }
    // Returns log q(z | y) + Z/2 log(2 pi). The constant cancels in log_ratio(), which also adds it to log p(z).
    double log_posterior(const double* z, const double* y) const override {
        double sum = 0;
        for (int i = 0; i < options.size; i++) {
            const double l = std::clamp(y[options.size + i], -8.0, 8.0), d = z[i] - y[i];
            sum -= 0.5 * (d * d * std::exp(-l) + l);
        }
        return sum;
    }
    // z holds standard normal numbers, and is replaced by f^-1(z), a sample of the prior.
    void draw(double* z) const override {
        const Numbers u = steps_.inverse({z, z + options.size});
        std::copy(u.begin(), u.end(), z);
    }
    // Only with ActNorm: the initial scales and shifts are computed from the samples z of the first batch.
    bool waits_for_data() const override { return steps_.waits_for_data(); }
    void start(Vectors z) const override { steps_.start(std::move(z)); }

  private:
    FlowSteps steps_;
};

}  // namespace

const MakeLatent make_flow = make_latent<Flow>;

}  // namespace masquerade
