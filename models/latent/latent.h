// SPDX-License-Identifier: MIT
// A latent layer maps the row x of [CLS] to a latent vector z, and z to a row u:  y = In x,  z ~ q(z | y),  u = Out z.
// The mean path draws no sample and takes z = mu; encodings and reconstructions use it.
// A kind of latent consists of a subclass of Latent, a name in LatentKind and a row of latent_kinds().
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/layers.h"
#include "models/latent/sphere.h"

namespace masquerade {

enum class LatentKind { vmf, power_spherical, gaussian, gaussian_chain, flow, fsq, vq, none };

struct LatentOptions {
    LatentKind kind = LatentKind::vmf;
    int size = 32;             // Z
    bool projects = true;      // false: no In and Out, Z = C, and y is the row of [CLS] itself
    bool norm = false;         // whether u passes through a layer norm
    double out_deviation = 0;  // standard deviation of Out's initial weights; 0: the default of the kind
    double kappa = 110;        // vmf, power_spherical: the concentration
    bool learn_kappa = false;
    double free_bits = 0;                   // in nats per layer: the loss contains max(KL, free_bits) instead of the KL
    std::string free_bits_of = "sentence";  // whose KL: sentence, number (with free_bits / Z) or batch (the mean KL)
    int levels = 5;                         // fsq: number of levels of each number
    int flow_steps = 3, flow_width = 64;
    int codes = 256, groups = 2;  // vq: codes per codebook; groups of Z / groups numbers, each with its own codebook
    double commitment = 0.25, decay = 0.99;
};

// The noise of one batch for every latent layer, determined by (seed, step, layer, document).
struct LatentNoise {
    // For each layer: e (B,Z), normal numbers; for distributions on the sphere also w (B), the cosines between samples
    // and their means, and dw / d log kappa (B).
    std::vector<std::vector<float>> w, w_by_log_kappa, e;
};

// The result of one latent layer.
struct LatentSample {
    Tensor* z = nullptr;     // (B,Z), A
    Tensor* y = nullptr;     // (B,inputs()) output of In
    Tensor* kl = nullptr;    // (B), or null if the KL is constant
    Tensor* kls = nullptr;   // (B,Z) terms of the KL, if free bits apply to numbers
    Tensor* loss = nullptr;  // (B) further loss per document, not scaled by the weight of the KL; null if none
    // (B,2Z) mean | log variance of a prior that depends on the samples of lower layers; null: the prior is fixed
    Tensor* prior = nullptr;
    Tensor* chain = nullptr;  // (B,Z) state r of that prior (gaussian.cpp)
    Tensor* code = nullptr;   // (B,groups) indices of the codebook rows that z consists of; null unless vq
};

// The distributions q(z | y) and p(z) of one layer, which has Z numbers per document.
class Latent {
  public:
    explicit Latent(const LatentOptions& o) : options(o) {}
    virtual ~Latent() = default;

    virtual int inputs() const { return options.size; }  // length of y per document
    // Standard deviation of Out's initial weights. It gives u about unit variance, like a token after its norm. With
    // 0.02 the rows of the latents would be negligible compared with other rows.
    virtual double out_deviation() const;
    // Samples z for y (B,inputs()); takes z = mu if `noise` is null. `below`: the samples of the layers below.
    virtual LatentSample sample(Tape& tape, Tensor* y, const LatentNoise* noise, int layer,
                                const std::vector<LatentSample>& below) const = 0;
    // Called after the backward pass of a step: updates the states of the latent (Parameters::add_state). weights (B)
    // are 0 for padding rows.
    virtual void learn(Tape& /*tape*/, const LatentSample& /*sample*/, Tensor* /*weights*/) const {}

    // The functions below are for one document: z has Z numbers, y has inputs() numbers.

    // The u-quantile of the cosine w between z and mu, and its derivative by log kappa.
    virtual SphereDistribution::Sample radial(double /*u*/) const { return {0, 0}; }
    virtual void project(double* /*z*/) const {}  // moves z to the nearest point of the latent space
    // Replaces the Z normal numbers in z by a sample of the prior. The sample may depend on the samples of lower layers,
    // which lie just before z in memory.
    virtual void draw(double* z) const { project(z); }
    virtual void between(const double* a, const double* b, double t, double* z) const;  // t = 0: z = a, t = 1: z = b
    virtual double constant_kl() const { return 0; }  // the KL in nats if it is the same for all documents, else 0
    // log q(z | y) - log p(z). `prior`: 2Z numbers if p depends on the samples of lower layers, else null.
    virtual double log_ratio(const double* /*z*/, const double* /*y*/, const double* /*prior*/) const { return 0; }
    // log q(z | y) plus a function that depends only on z
    virtual double log_posterior(const double* z, const double* y) const { return log_ratio(z, y, nullptr); }
    virtual bool has_density() const { return true; }  // false: q(z | y) is a single point
    // Parts per code, and possible values of each part; 0 if the latent is continuous.
    virtual int code_parts() const { return 0; }
    virtual int code_choices() const { return 0; }
    virtual void read_code(const double* /*z*/, int* /*parts*/) const {}  // sets parts to the code nearest to z
    virtual void write_code(const int* /*parts*/, double* /*z*/) const {}
    // Replaces each part of the code of z by a random value with probability `change`. Returns log q(z) - log p(z) for
    // the new z, where q is its distribution.
    double disturb(double* z, double change, Sequence& random) const;

    const LatentOptions options;
};

struct LatentKindRow {
    LatentKind kind;
    const char *name, *what;
    // Makes a latent. Adds its parameters and states to `parameters` (unless null), under `path`. `before`: the latent
    // of the layer below, whose tables can be shared, or null.
    std::shared_ptr<const Latent> (*make)(Parameters* parameters, const std::string& path, const LatentOptions& options,
                                          const Latent* before);
    enum Trait : unsigned {
        kappa = 1,          // has a concentration, which can be learned
        kl = 2,             // the KL differs between documents (it also does if kappa is learned)
        kl_of_numbers = 4,  // the KL is a sum over the numbers of the latent: LatentSample::kls
    };
    unsigned traits = 0;
    bool has(Trait trait) const { return traits & trait; }
};
const std::vector<LatentKindRow>& latent_kinds();
const LatentKindRow& row_of(LatentKind kind);
void expect_fitting(const LatentOptions& options);  // throws BadUsage if an option does not suit the kind
// Returns a constant (n): counted * weight / targets, the weights with which losses add up to nats per target.
Tensor* loss_weights(Tape& tape, std::vector<double> counted, double weight, int targets, const char* name);

class LatentLayer {
  public:
    LatentLayer(Parameters& p, const std::string& path, int width, double deviation, double eps,
                const LatentOptions& options, const Latent* before = nullptr);

    // Samples z for the rows x(B,C); takes z = mu if `noise` is null. `layer` selects the noise of this layer.
    LatentSample sample(Tape& tape, Tensor* x, const LatentNoise* noise, int layer,
                        const std::vector<LatentSample>& below = {}) const;
    // Returns u(B,C) = Out z, normalised if options.norm. u replaces the row of [CLS], and the decoder attends to u.
    Tensor* out(Tape& tape, Tensor* z) const;
    // Returns (1): `total`, in nats per target, plus kl_weight times the sample's KL (at least the free bits) plus the
    // sample's further loss. documents (B): 1, or 0 for padding.
    Tensor* add_costs(Tape& tape, Tensor* total, const LatentSample& sample, int layer,
                      const std::vector<double>& documents, int targets, double kl_weight) const;

    const std::shared_ptr<const Latent> latent;

  private:
    Linear in_, out_;
    LayerNorm norm_;
    std::string path_;
};

// The latents of all layers together: their noise, prior and densities.
class LatentSpace {
  public:
    LatentSpace(const LatentOptions& options, int layers);
    explicit LatentSpace(const std::vector<LatentLayer>& layers);
    // Returns the noise of training step `step` for the documents with these names.
    LatentNoise noise(const std::vector<int>& names, std::uint64_t seed, std::uint32_t step) const;
    // Returns one latent vector (all layers in order) drawn from the prior; it is determined by (seed, line, sample).
    std::vector<double> prior(std::uint64_t seed, std::uint32_t line, std::uint32_t sample) const;
    // Returns z with its numbers [from, to) replaced by draws from the prior, each layer given the layers below.
    std::vector<double> redrawn(std::vector<double> z, int from, int to, std::uint64_t seed, std::uint32_t line,
                                std::uint32_t sample) const;
    // Sum of the layers' constant KLs, in nats per sentence.
    double constant_kl() const;
    // log q(z | y) - log p(z) in the lowest layer, for one document; y has inputs() numbers.
    double log_ratio(const double* z, const double* y) const { return latents_[0]->log_ratio(z, y, nullptr); }
    // Moves a latent vector to the nearest point of the latent space.
    void project(std::vector<double>& latent) const;
    // Interpolates layer by layer between a (t = 0) and b (t = 1).
    std::vector<double> interpolate(const std::vector<double>& a, const std::vector<double>& b, double t) const;

    int layers() const { return int(latents_.size()); }
    int begin(int layer) const;  // offset of the layer in a latent vector; begin(layers()) is the vector's length
    int numbers() const { return begin(layers()); }
    std::string sizes() const;  // Z, or a comma-separated list if the layers differ

  private:
    std::vector<std::shared_ptr<const Latent>> latents_;
};

}  // namespace masquerade
