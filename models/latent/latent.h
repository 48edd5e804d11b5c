// SPDX-License-Identifier: MIT
// One latent layer: C -> Z, a sample on the way, Z -> C.   y = In x,  z ~ q(z | y),  u = Out z
// The mean path takes z = mu: what an encoder reports and a reconstruction uses.
// A kind is one class, one name here and one row of latent_kinds().
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
    bool projects = true;      // else In and Out are left out, and Z = C: y is the row of [CLS] itself
    bool norm = false;         // u has a layer norm
    double out_deviation = 0;  // of Out's first weights; 0: as the kind says
    double kappa = 110;        // vmf, power_spherical
    bool learn_kappa = false;
    double free_bits = 0;                   // nats of a layer below which its KL costs no more
    std::string free_bits_of = "sentence";  // or number, batch
    int levels = 5;                         // fsq
    int flow_steps = 3, flow_width = 64;
    int codes = 256, groups = 2;  // vq: codes of a codebook, of which each group of Z / groups numbers has one
    double commitment = 0.25, decay = 0.99;
};

// The noise of one batch for every latent layer, drawn by name: (seed, step, layer, document).
struct LatentNoise {
    std::vector<std::vector<float>> w, w_by_log_kappa, e;  // per layer: (B), (B) and (B,Z)
};

// The result of one latent layer.
struct LatentSample {
    Tensor* z = nullptr;     // (B,Z), A
    Tensor* y = nullptr;     // (B,inputs()) what In made
    Tensor* kl = nullptr;    // (B), or null where it is a constant
    Tensor* kls = nullptr;   // (B,Z) its terms, where the free bits are those of numbers
    Tensor* loss = nullptr;  // (B) what a document costs besides, whatever the weight of the KL; null: nothing
    // (B,2Z) mean | log variance of a prior that depends on the samples below; null: it does not
    Tensor* prior = nullptr;
    Tensor* chain = nullptr;  // (B,Z) what that prior has kept of them
    Tensor* code = nullptr;   // (B,groups) which rows of a codebook z is made of; null: of none
};

// The distribution of one layer: of Z numbers for each document.
class Latent {
  public:
    explicit Latent(const LatentOptions& o) : options(o) {}
    virtual ~Latent() = default;

    virtual int inputs() const { return options.size; }  // numbers of y for one document
    // The deviation of the first weights of Out, such that u has about unit numbers, as a token after its norm has. A
    // start of 0.02 lets the rows of the latents drown among the others.
    virtual double out_deviation() const;
    // From y (B,inputs()); the mean path where `noise` is null. `below`: the samples of the layers below.
    virtual LatentSample sample(Tape& tape, Tensor* y, const LatentNoise* noise, int layer,
                                const std::vector<LatentSample>& below) const = 0;
    // After the backward of a step: changes the states that the latent has (Parameters::add_state). weights (B): 0 of
    // inert rows.
    virtual void learn(Tape& /*tape*/, const LatentSample& /*sample*/, Tensor* /*weights*/) const {}

    // Functions of one document: z has Z numbers, y inputs().
    // The noise w from a uniform number, and its derivative by log kappa.
    virtual SphereDistribution::Sample radial(double /*u*/) const { return {0, 0}; }
    virtual void project(double* /*z*/) const {}  // makes a mixture of points a point again
    // From Z normal numbers, a point of the prior. The points of the layers below stand before z.
    virtual void draw(double* z) const { project(z); }
    virtual void between(const double* a, const double* b, double t, double* z) const;  // from a to b, t in [0,1]
    virtual double constant_kl() const { return 0; }  // nats, where it is the same for all documents
    // log q(z | y) - log p(z); `prior`: 2Z numbers where p depends on the samples below, or null
    virtual double log_ratio(const double* /*z*/, const double* /*y*/, const double* /*prior*/) const { return 0; }
    // ... up to a function of z
    virtual double log_posterior(const double* z, const double* y) const { return log_ratio(z, y, nullptr); }
    virtual bool has_density() const { return true; }  // else q(z | y) is one point
    // ... of finitely many, each made of so many parts, which are one of so many each. 0: of no such.
    virtual int code_parts() const { return 0; }
    virtual int code_choices() const { return 0; }
    virtual void read_code(const double* /*z*/, int* /*parts*/) const {}  // those nearest to z
    virtual void write_code(const int* /*parts*/, double* /*z*/) const {}
    // Changes each part of a code, with the share `change`, to any of that part: log q(z) - log p(z) for the q that
    // this is.
    double disturb(double* z, double change, Sequence& random) const;

    const LatentOptions options;
};

struct LatentKindRow {
    LatentKind kind;
    const char *name, *what;
    // `parameters` holds the states, under `path`; null: none are needed. `before`: the latent of the layer below, or
    // null, whose tables can be shared.
    std::shared_ptr<const Latent> (*make)(Parameters* parameters, const std::string& path, const LatentOptions& options,
                                          const Latent* before);
    enum Trait : unsigned {
        kappa = 1,          // a concentration, which can be learned
        kl = 2,             // a KL that differs between documents; a learned kappa makes one, too
        kl_of_numbers = 4,  // which is a sum over the numbers of the latent: LatentSample::kls
    };
    unsigned traits = 0;
    bool has(Trait trait) const { return traits & trait; }
};
const std::vector<LatentKindRow>& latent_kinds();
const LatentKindRow& row_of(LatentKind kind);
void expect_fitting(const LatentOptions& options);  // BadUsage: an option of a part that the kind does not have
// (n) Weights of a loss in nats a target: counted * weight / targets, as a constant.
Tensor* loss_weights(Tape& tape, std::vector<double> counted, double weight, int targets, const char* name);

class LatentLayer {
  public:
    LatentLayer(Parameters& p, const std::string& path, int width, double deviation, double eps,
                const LatentOptions& options, const Latent* before = nullptr);

    // x(B,C) -> a sample, or the mean path where `noise` is null. `layer` picks this layer's noise.
    LatentSample sample(Tape& tape, Tensor* x, const LatentNoise* noise, int layer,
                        const std::vector<LatentSample>& below = {}) const;
    // u(B,C) = Out z, or its norm: what replaces [CLS] and what the decoder sees
    Tensor* out(Tape& tape, Tensor* z) const;
    // (1): total, in nats a target, and what the sample costs: its KL less the free bits, and its own loss. documents
    // (B): 1, or 0 where inert.
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
    // names: the document of every row
    LatentNoise noise(const std::vector<int>& names, std::uint64_t seed, std::uint32_t step) const;
    // One latent vector (layer by layer) from the prior, drawn by (seed, line, sample).
    std::vector<double> prior(std::uint64_t seed, std::uint32_t line, std::uint32_t sample) const;
    // The same of a part alone: z with its numbers [from, to) drawn anew, each layer's given the layers below.
    std::vector<double> redrawn(std::vector<double> z, int from, int to, std::uint64_t seed, std::uint32_t line,
                                std::uint32_t sample) const;
    // Nats a sentence where it is a constant, all layers together.
    double constant_kl() const;
    // log q(z_l | y) - log p(z_l), one layer of one document; y: the layer's inputs() numbers.
    double log_ratio(const double* z, const double* y) const { return latents_[0]->log_ratio(z, y, nullptr); }
    // Makes a mixture of latent vectors a point of the space again.
    void project(std::vector<double>& latent) const;
    // Between a and b at t in [0,1], layer by layer.
    std::vector<double> interpolate(const std::vector<double>& a, const std::vector<double>& b, double t) const;

    int layers() const { return int(latents_.size()); }
    int begin(int layer) const;  // where its numbers stand in a latent vector; of layers(): how many there are
    int numbers() const { return begin(layers()); }
    std::string sizes() const;  // Z, or all of them with commas where they differ

  private:
    std::vector<std::shared_ptr<const Latent>> latents_;
};

}  // namespace masquerade
