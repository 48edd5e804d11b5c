// SPDX-License-Identifier: MIT
// One latent layer: C -> Z, a sample, Z -> C.   y = In x,  z ~ q(z | y),  u = Out z
// The mean path takes z = mu; an encoder reports it, and a reconstruction uses it.
// A kind consists of a class, a name in LatentKind and a row of latent_kinds().
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
    double kappa = 110;        // vmf, power_spherical
    bool learn_kappa = false;
    double free_bits = 0;                   // KL of a layer, in nats, that is free: a smaller KL costs the same
    std::string free_bits_of = "sentence";  // the unit whose KL is compared: sentence, number or batch
    int levels = 5;                         // fsq
    int flow_steps = 3, flow_width = 64;
    int codes = 256, groups = 2;  // vq: codes per codebook; groups of Z / groups numbers, each with its own codebook
    double commitment = 0.25, decay = 0.99;
};

// The noise of one batch for every latent layer, determined by (seed, step, layer, document).
struct LatentNoise {
    std::vector<std::vector<float>> w, w_by_log_kappa, e;  // per layer: (B), (B) and (B,Z)
};

// The result of one latent layer.
struct LatentSample {
    Tensor* z = nullptr;     // (B,Z), A
    Tensor* y = nullptr;     // (B,inputs()) output of In
    Tensor* kl = nullptr;    // (B), or null if the KL is constant
    Tensor* kls = nullptr;   // (B,Z) terms of the KL, if free bits apply to numbers
    Tensor* loss = nullptr;  // (B) further loss per document, not scaled by the weight of the KL; null: none
    // (B,2Z) mean | log variance of a prior that depends on the samples of lower layers; null: the prior is fixed
    Tensor* prior = nullptr;
    Tensor* chain = nullptr;  // (B,Z) state r of that prior (gaussian.cpp)
    Tensor* code = nullptr;   // (B,groups) codebook rows that z consists of; null: z has no codes
};

// The distribution of one layer: Z numbers per document.
class Latent {
  public:
    explicit Latent(const LatentOptions& o) : options(o) {}
    virtual ~Latent() = default;

    virtual int inputs() const { return options.size; }  // length of y per document
    // Standard deviation of Out's initial weights. It gives u about unit variance, like a token after its norm. With
    // 0.02 the rows of the latents would be negligible beside the other rows.
    virtual double out_deviation() const;
    // Samples from y (B,inputs()); the mean path if `noise` is null. `below`: the samples of the layers below.
    virtual LatentSample sample(Tape& tape, Tensor* y, const LatentNoise* noise, int layer,
                                const std::vector<LatentSample>& below) const = 0;
    // Called after the backward of a step: updates the states of the latent (Parameters::add_state). weights (B) are 0
    // for inert rows.
    virtual void learn(Tape& /*tape*/, const LatentSample& /*sample*/, Tensor* /*weights*/) const {}

    // The functions below are about one document: z has Z numbers, y has inputs() numbers.
    // The cosine w for a uniform u, and its derivative by log kappa.
    virtual SphereDistribution::Sample radial(double /*u*/) const { return {0, 0}; }
    virtual void project(double* /*z*/) const {}  // moves z to the nearest point of the latent space
    // Replaces Z normal numbers by a sample of the prior. The samples of lower layers precede z in memory.
    virtual void draw(double* z) const { project(z); }
    virtual void between(const double* a, const double* b, double t, double* z) const;  // from a to b, t in [0,1]
    virtual double constant_kl() const { return 0; }  // the KL in nats if it is the same for all documents, else 0
    // log q(z | y) - log p(z). `prior`: 2Z numbers if p depends on the samples of lower layers, else null.
    virtual double log_ratio(const double* /*z*/, const double* /*y*/, const double* /*prior*/) const { return 0; }
    // log q(z | y), up to a function of z
    virtual double log_posterior(const double* z, const double* y) const { return log_ratio(z, y, nullptr); }
    virtual bool has_density() const { return true; }  // false: q(z | y) is a single point
    // Parts per code, and possible values of each part; 0 if the latent is continuous.
    virtual int code_parts() const { return 0; }
    virtual int code_choices() const { return 0; }
    virtual void read_code(const double* /*z*/, int* /*parts*/) const {}  // the code nearest to z
    virtual void write_code(const int* /*parts*/, double* /*z*/) const {}
    // Replaces each part of a code by a random value with probability `change`. Returns log q(z) - log p(z), where q is
    // the distribution of the result.
    double disturb(double* z, double change, Sequence& random) const;

    const LatentOptions options;
};

struct LatentKindRow {
    LatentKind kind;
    const char *name, *what;
    // Adds parameters and states to `parameters` under `path`; null: adds none. `before`: the latent of the layer
    // below, whose tables can be shared, or null.
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
void expect_fitting(const LatentOptions& options);  // BadUsage: an option that the kind does not support
// (n) Weights that turn a loss into nats per target: counted * weight / targets, as a constant.
Tensor* loss_weights(Tape& tape, std::vector<double> counted, double weight, int targets, const char* name);

class LatentLayer {
  public:
    LatentLayer(Parameters& p, const std::string& path, int width, double deviation, double eps,
                const LatentOptions& options, const Latent* before = nullptr);

    // A sample for x(B,C); the mean path if `noise` is null. `layer` selects the noise of this layer.
    LatentSample sample(Tape& tape, Tensor* x, const LatentNoise* noise, int layer,
                        const std::vector<LatentSample>& below = {}) const;
    // u(B,C) = Out z, normalised if options.norm: it replaces the row of [CLS], and the decoder attends to it
    Tensor* out(Tape& tape, Tensor* z) const;
    // (1): `total`, in nats per target, plus the weighted KL of the sample (at least the free bits) and its own loss.
    // documents (B): 1, or 0 if inert.
    Tensor* add_costs(Tape& tape, Tensor* total, const LatentSample& sample, int layer,
                      const std::vector<double>& documents, int targets, double kl_weight) const;

    const std::shared_ptr<const Latent> latent;

  private:
    Linear in_, out_;
    LayerNorm norm_;
    std::string path_;
};

// All layers together: noise, prior, densities.
class LatentSpace {
  public:
    LatentSpace(const LatentOptions& options, int layers);
    explicit LatentSpace(const std::vector<LatentLayer>& layers);
    // names: the documents' names
    LatentNoise noise(const std::vector<int>& names, std::uint64_t seed, std::uint32_t step) const;
    // One latent vector (all layers in order) from the prior, determined by (seed, line, sample).
    std::vector<double> prior(std::uint64_t seed, std::uint32_t line, std::uint32_t sample) const;
    // z with its numbers [from, to) drawn again from the prior, each layer given the layers below.
    std::vector<double> redrawn(std::vector<double> z, int from, int to, std::uint64_t seed, std::uint32_t line,
                                std::uint32_t sample) const;
    // Sum of the layers' constant KLs, in nats per sentence.
    double constant_kl() const;
    // log q(z | y) - log p(z) in the lowest layer, for one document; y has inputs() numbers.
    double log_ratio(const double* z, const double* y) const { return latents_[0]->log_ratio(z, y, nullptr); }
    // Moves a latent vector to the nearest point of the latent space.
    void project(std::vector<double>& latent) const;
    // Between a and b at t in [0,1], layer by layer.
    std::vector<double> interpolate(const std::vector<double>& a, const std::vector<double>& b, double t) const;

    int layers() const { return int(latents_.size()); }
    int begin(int layer) const;  // offset of the layer in a latent vector; begin(layers()) is the vector's length
    int numbers() const { return begin(layers()); }
    std::string sizes() const;  // Z, or a comma-separated list if the layers differ

  private:
    std::vector<std::shared_ptr<const Latent>> latents_;
};

}  // namespace masquerade
