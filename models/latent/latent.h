// SPDX-License-Identifier: MIT
// One latent layer: C -> Z, a sample on the way, Z -> C.   y = In x,  z ~ q(z | y),  u = Out z
//   vmf       mu = y / |y|, z ~ vMF(mu, kappa) with kappa fixed, prior uniform on the sphere: KL is a constant
//   gaussian  y = mu | log variance, z = mu + exp(log variance / 2) e, prior N(0, 1)
//   none      z = y: the plain auto-encoder (UniAE)
// The mean path takes z = mu: what an encoder reports and a reconstruction uses.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/layers.h"
#include "models/latent/vmf.h"

namespace masquerade {

enum class LatentKind { vmf, gaussian, none };

struct LatentOptions {
    LatentKind kind = LatentKind::vmf;
    int size = 32;      // Z
    double kappa = 110;  // vmf
};

// The noise of one batch for every latent layer, drawn by name: (seed, step, layer, document).
struct LatentNoise {
    std::vector<std::vector<float>> w, e;  // per layer: (B) and (B,Z)
};

// What came out of one latent layer.
struct LatentSample {
    Tensor* z = nullptr;   // (B,Z), A
    Tensor* y = nullptr;   // (B,2Z) of a gaussian: mu | log variance; else (B,Z)
    Tensor* kl = nullptr;  // (B) of a gaussian; null where it is a constant
};

class LatentLayer {
  public:
    LatentLayer(Parameters& p, const std::string& path, int width, double deviation,
                const LatentOptions& options);

    // x(B,C) -> a sample, or the mean path where `noise` is null. `layer` picks this layer's noise.
    LatentSample sample(Tape& tape, Tensor* x, const LatentNoise* noise, int layer) const;
    // u(B,C) = Out z: what replaces [CLS] and what the decoder sees
    Tensor* out(Tape& tape, Tensor* z) const;

  private:
    LatentOptions options_;
    Linear in_, out_;
    std::string path_;
};

// Constants of the latent space shared by all layers: noise, prior, densities.
class LatentSpace {
  public:
    LatentSpace(const LatentOptions& options, int layers);
    // names: the document of every row
    LatentNoise noise(const std::vector<int>& names, std::uint64_t seed, std::uint32_t step) const;
    // One latent vector (K Z numbers, layer by layer) from the prior, drawn by (seed, line, sample).
    std::vector<double> prior(std::uint64_t seed, std::uint32_t line, std::uint32_t sample) const;
    // Nats a sentence where it is a constant (vmf: all layers together; none: 0).
    double constant_kl() const;
    // log q(z_l | y) - log p(z_l), one layer of one document; y: the layer's Z (gaussian: 2Z) numbers.
    double log_ratio(const double* z, const double* y) const;
    // log p(z) of a whole latent vector under the prior: uniform, or normal.
    double log_prior(const std::vector<double>& z) const;
    // Makes a mixture of latent vectors a point of the space again (vmf: back to the sphere, layer by layer).
    void project(std::vector<double>& latent) const;
    // Between a and b at t in [0,1]: along the great circle of every layer (vmf), or straight.
    std::vector<double> interpolate(const std::vector<double>& a, const std::vector<double>& b,
                                    double t) const;

    int layers() const { return layers_; }
    int size() const { return options_.size; }
    bool spherical() const { return options_.kind == LatentKind::vmf; }

  private:
    LatentOptions options_;
    int layers_;
    std::shared_ptr<const VonMisesFisher> vmf_;
};

}  // namespace masquerade
