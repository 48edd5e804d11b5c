// SPDX-License-Identifier: MIT
// A latent layer maps x, the hidden state of the token [CLS], to a latent vector z, and z to a row u that replaces x.
// In and Out are linear maps:
//   y = In x,   z ~ q(z | y),   u = Out z
// The mean path draws no sample: z is the mean mu of q. Encoding and reconstructing a sentence use the mean path.
// A kind of latent consists of a subclass of Latent, a name in LatentKind and a row of latent_kinds().
#pragma once
#include <algorithm>
#include <memory>
#include <string>

#include "engine/nn/layers.h"
#include "models/latent/flow_steps.h"
#include "models/latent/sphere.h"

namespace masquerade {

enum class LatentKind { vmf, power_spherical, gaussian, gaussian_chain, flow, fsq, vq, none };

struct LatentOptions {
    LatentKind kind = LatentKind::vmf;
    int size = 32;  // Z, the length of the latent vector of one layer
    // Whether there are linear maps In and Out. In computes the latent's input y from the row of [CLS]. Out computes
    // the new row of [CLS] from z. False: there are no maps (y = x and u = z), and Z must equal the model width.
    bool projects = true;
    bool norm = false;         // whether a layer norm follows the linear map Out
    double out_deviation = 0;  // standard deviation of Out's initial weights; 0: Latent::out_deviation()
    double kappa = 110;        // vmf, power_spherical: the concentration, or its initial value if it is learned
    bool learn_kappa = false;
    double free_bits = 0;  // in nats per latent layer; if above 0, the loss has max(KL, free_bits) instead of the KL
    // Which KL is meant in max(KL, free_bits). "sentence": the KL of each sentence; "number": the KL of each number of
    // z, with the limit free_bits / Z; "batch": the mean KL of a batch.
    std::string free_bits_of = "sentence";
    // For pairs of source and target: whether the prior depends on the source, through a learned linear map
    // (UniVae::encode).
    bool source_prior = false;
    int levels = 5;  // fsq: number of values that each number of z can have
    FlowOptions flow = {};
    // vq: `codes` is the number of rows of a codebook. The numbers of z are divided into `groups` groups, each with its
    // own codebook. commitment: weight of the commitment loss. decay: decay of the codebooks' moving average.
    int codes = 256, groups = 2;
    double commitment = 0.25, decay = 0.99;
};

// The noise of one batch of B documents for every latent layer. It depends only on (seed, step, layer, document).
struct LatentNoise {
    // For each layer: e (B,Z), standard normal numbers; w (B), the cosine between each sample z and the mean of its
    // distribution; w_by_log_kappa (B), the derivative dw / d log kappa. For latents that do not lie on the sphere, w
    // and w_by_log_kappa are 0.
    std::vector<std::vector<float>> w, w_by_log_kappa, e;
};

// The result of one latent layer for B documents.
struct LatentSample {
    Tensor* z = nullptr;     // (B,Z) the latent vectors; if activations are stored as bf16, z is f32
    Tensor* y = nullptr;     // (B,inputs()) the output of the linear map In, on which q(z | y) depends
    Tensor* kl = nullptr;    // (B) KL of each document in nats; null if it is constant (Latent::constant_kl)
    Tensor* kls = nullptr;   // (B,Z) the KL of each number of z; null unless free bits apply to each number of z
    Tensor* loss = nullptr;  // (B) further loss of each document, not scaled by kl_weight (vq: commitment); or null
    // (B,2Z) the means, then the log variances of the prior. Null unless the prior depends on the samples of the layers
    // below (gaussian_chain, except in the lowest layer) or on the source (source_prior).
    Tensor* prior = nullptr;
    Tensor* chain = nullptr;  // gaussian_chain: (B,Z) the hidden state r from which `prior` is computed; or null
    Tensor* code = nullptr;   // vq: (B,groups) index of the codebook row that replaced each group of y; else null
};

using LatentSamples = std::vector<LatentSample>;  // of several latent layers, the lowest layer first

// The posterior q(z | y) and the prior p(z) of one latent layer; z has Z numbers per document.
class Latent {
  public:
    // MakeLatent describes the arguments. This constructor uses only `o`; subclasses use the other arguments.
    Latent(Parameters* /*p*/, const std::string& /*path*/, const LatentOptions& o, const Latent* /*before*/)
        : options(o) {}
    virtual ~Latent() = default;

    virtual int inputs() const { return options.size; }  // length of y per document
    // Standard deviation of the initial weights of Out, the linear map from z to the row u. It gives u about unit
    // variance, like a token's row after a layer norm. With the usual 0.02, u would be negligible next to the rows of
    // the tokens.
    virtual double out_deviation() const;
    // Samples z from q(z | y), where y is (B,inputs()). If `noise` is null, z is the mean of q. `layer` is the index
    // of this latent layer; `below` are the samples of the latent layers below.
    virtual LatentSample sample(Tape& tape, Tensor* y, const LatentNoise* noise, int layer,
                                const LatentSamples& below) const = 0;
    // Sets the prior and the KL of `sample`: each row of `prior`, (B,inputs()), has the parameters of the prior of one
    // document. Only called if options.source_prior is set; sample() then leaves out the KL.
    virtual void use_prior(Tape& /*tape*/, LatentSample& /*sample*/, Tensor* /*prior*/) const {}
    // Whether the latent has states, such as codebooks (Parameters::add_state), that learn() updates.
    virtual bool learns() const { return false; }
    // Call it after the backward pass of a step. y(B,inputs()) and code(B,code_parts()) are those of LatentSample, for
    // all documents of the step. weights (B) are 1, or 0 for padding documents. Random numbers depend on the seed and
    // the step.
    virtual void learn(const View& /*y*/, const View& /*code*/, const View& /*weights*/, std::uint64_t /*seed*/,
                       std::uint32_t /*step*/) const {}

    // Whether some parameters still need initial values that are computed from the samples z of the first batch.
    // start() computes these values; its argument z has one sample per document.
    virtual bool waits_for_data() const { return false; }
    virtual void start(Vectors /*z*/) const {}

    // Latents on the sphere: the distribution of the cosine w between z and its mean, for the current kappa. Null for
    // all other latents. Valid until a function of the latent is called after kappa has changed.
    virtual const SphereDistribution* cosines() const { return nullptr; }

    // The functions below are for one document: z has Z numbers, y has inputs() numbers.

    // Makes the noise of one document smaller (LatentNoise), so that z is only `share` times as far from its mean:
    // scales e(Z) or, on the sphere, the angle between z and its mean.
    virtual void scale_noise(double share, float& /*w*/, float& /*w_by_log_kappa*/, float* e) const {
        for (int i = 0; i < options.size; i++) e[i] = float(share * e[i]);
    }
    // Moves z to the nearest point of the latent space. On the sphere, a z of zeros stays as it is.
    virtual void project(double* /*z*/) const {}
    // Replaces z, which holds Z standard normal numbers, by a sample of the prior. If the prior depends on the samples
    // of the layers below, these samples must lie just before z in memory.
    virtual void draw(double* z) const { project(z); }
    // Interpolates: z = a if t = 0, and z = b if t = 1. The default sets z to a + t (b - a), projected onto the latent
    // space.
    virtual void between(const double* a, const double* b, double t, double* z) const;
    // The KL in nats, if it is the same for all documents and no parameter can change it; else 0.
    virtual double constant_kl() const { return 0; }
    // Returns log q(z | y) - log p(z). `prior` is a row of LatentSample::prior, or null if that tensor is null.
    virtual double log_ratio(const double* /*z*/, const double* /*y*/, const double* /*prior*/) const { return 0; }
    // For continuous latents with a density: returns log q(z | y) plus a term that depends only on z. The term cancels
    // in the difference of the results for two documents, that is, for two y (LatentSample::y) and the same z.
    virtual double log_posterior(const double* z, const double* y) const { return log_ratio(z, y, nullptr); }
    virtual bool has_density() const { return true; }  // whether log_ratio() is defined; false for an auto-encoder
    // Discrete latents: a code determines z. A code is a list of code_parts() numbers from 0 to code_choices() - 1. If
    // the latent is continuous, code_parts() and code_choices() return 0.
    virtual int code_parts() const { return 0; }
    virtual int code_choices() const { return 0; }
    // read_code() returns the code nearest to z. write_code() sets z to the vector of a code.
    virtual std::vector<int> read_code(const double* /*z*/) const { return {}; }
    virtual void write_code(const std::vector<int>& /*parts*/, double* /*z*/) const {}
    // Discrete latents: replaces each part of the code of z, with probability `change`, by a uniformly drawn value, and
    // changes z accordingly. Returns log q(z) - log p(z) for the new z, where q is the distribution of the new z, and p
    // is the prior.
    double disturb(double* z, double change, Sequence& random) const;

    const LatentOptions options;
};

// Makes a latent. If `parameters` is not null, adds the latent's parameters and states to it, under `path`. `before` is
// the latent of the next lower latent layer, or null. A learned prior may depend on the samples of `before`, and
// latents on the sphere may share its table of quantiles.
using MakeLatent = std::shared_ptr<const Latent> (*)(Parameters* parameters, const std::string& path,
                                                     const LatentOptions& options, const Latent* before);

struct LatentKindRow {
    LatentKind kind;
    const char *name, *what;
    MakeLatent make;
    enum Trait : unsigned {
        kappa = 1,          // the kind has a concentration kappa, which the option learn_kappa makes a parameter
        kl = 2,             // the KL differs between documents, so the loss contains it
        kl_of_numbers = 4,  // the KL is a sum over the numbers of z, and LatentSample::kls can hold the terms
        any_prior = 8,      // the prior can be computed from the source of a pair (Latent::use_prior)
        fills_space = 16,   // z can be any vector of Z numbers, and is neither on a sphere nor a code
        noise = 32,         // z is drawn around a mean; without noise, the sentence determines z
    };
    unsigned traits = 0;
    bool has(Trait trait) const { return traits & trait; }
};
const std::vector<LatentKindRow>& latent_kinds();  // in the order of LatentKind
const LatentKindRow& row_of(LatentKind kind);
// Returns the kind with this name. Throws BadUsage with a list of all names if there is none.
const LatentKindRow& find_latent(const std::string& name);
// Throws BadUsage if an option does not suit `kinds`, the kinds of the layers with a latent. learn_kappa and free_bits
// must have an effect in at least one of these layers. All of these layers must support source_prior. The layers whose
// KL is in the loss must support free_bits_of=number. learn_kappa also requires kappa above 0.
void expect_fitting(const LatentOptions& options, const std::vector<LatentKind>& kinds);
inline void expect_fitting(const LatentOptions& options) { expect_fitting(options, {options.kind}); }
// Returns the constant weights (n) counted[i] * weight / targets for n losses in nats. counted[i] says how often loss i
// counts, for example 0 times for a padding document. `targets` is the number of target tokens of the batch, so the
// weighted sum of the losses is `weight` times a loss per target token.
Tensor* loss_weights(Tape& tape, Numbers counted, double weight, int targets, const char* name);

class LatentLayer {
  public:
    LatentLayer(Parameters& p, const std::string& path, int width, double deviation, double eps,
                const LatentOptions& options, const Latent* before = nullptr);

    // Samples z for x(B,C), the row of [CLS] of each document. If `noise` is null, z is the mean. `layer` is the index
    // of this latent layer; `below` are the samples of the latent layers below.
    LatentSample sample(Tape& tape, Tensor* x, const LatentNoise* noise, int layer,
                        const LatentSamples& below = {}) const;
    // use_prior() and prior_sample() are only for options.source_prior. x(B,C) holds the rows of [CLS] from an encoder
    // pass that reads only the sources. A linear map computes the parameters of the prior of each document from x.
    // use_prior() sets this prior in `sample`; prior_sample() samples from this prior.
    void use_prior(Tape& tape, Tensor* x, LatentSample& sample) const;
    LatentSample prior_sample(Tape& tape, Tensor* x, const LatentNoise* noise, int layer) const;
    // Applies the linear map Out to z(B,Z), and then a layer norm if options.norm is set. Returns the result u(B,C). u
    // replaces the row of [CLS], and the decoder attends to u.
    Tensor* out(Tape& tape, Tensor* z) const;
    // Returns one number, the loss in nats per target token: `total` + kl_weight * KL + LatentSample::loss. The last
    // two terms are summed over the documents and divided by `targets`, the number of target tokens. If
    // LatentOptions::free_bits is above 0, max(KL, free_bits) replaces the KL; free_bits_of says which KL is meant. A
    // constant KL is left out. documents (B) are 1, or 0 for padding documents.
    Tensor* add_costs(Tape& tape, Tensor* total, const LatentSample& sample, int layer, const Numbers& documents,
                      int targets, double kl_weight) const;

    const std::shared_ptr<const Latent> latent;

  private:
    Linear in_, out_, prior_;
    LayerNorm norm_;
    std::string path_;
};

// The latents of all latent layers together: their noise, prior and densities. In this class, a latent vector holds the
// latents of all these layers one after another, the lowest layer first.
class LatentSpace {
  public:
    LatentSpace(const LatentOptions& options, int layers);
    explicit LatentSpace(const std::vector<LatentLayer>& layers);
    // Returns the noise of training step `step` for the documents of a batch. names[b] is a number that identifies
    // document b, so the noise of a document does not depend on the rest of the batch.
    LatentNoise noise(const std::vector<int>& names, std::uint64_t seed, std::uint32_t step) const;
    void scale_noise(LatentNoise& noise, double share) const;  // Latent::scale_noise() of every layer and document
    // Returns a latent vector drawn from the prior. It depends only on (seed, line, sample).
    Numbers prior(std::uint64_t seed, std::uint32_t line, std::uint32_t sample) const;
    // Returns z with its numbers [from, to) drawn anew from the prior, given the latents of the layers below. If only
    // some numbers of a layer are drawn, the latent of this layer is then projected onto the latent space.
    Numbers redrawn(Numbers z, int from, int to, std::uint64_t seed, std::uint32_t line, std::uint32_t sample) const;
    // Sum of Latent::constant_kl() over the layers, in nats per sentence.
    double constant_kl() const;
    // Returns log q(z | y) - log p(z) of the lowest latent layer, for one document; y has inputs() numbers.
    double log_ratio(const double* z, const double* y) const { return latents_[0]->log_ratio(z, y, nullptr); }
    // Moves a latent vector to the nearest point of the latent space.
    void project(Numbers& latent) const;
    // Does the same for a vector that was read from a file, but keeps its numbers if they differ from the nearest point
    // only by the rounding of float. Latents that a model has computed therefore keep their bits.
    void project_stored(Numbers& latent) const;
    // Replaces the latents of the layers [from, to) in z by the latents of these layers in `other`.
    void replace(Numbers& z, const Numbers& other, int from, int to) const {
        std::copy(other.begin() + begin(from), other.begin() + begin(to), z.begin() + begin(from));
    }
    // Discrete latents. code_of() returns the code of a latent vector: for each layer, the list of its parts
    // (Latent::read_code). latent_of() returns the latent vector of a code. If the latents are continuous, the lists
    // are empty.
    using Code = std::vector<std::vector<int>>;
    Code code_of(const Numbers& latent) const;
    Numbers latent_of(const Code& code) const;
    // Interpolates layer by layer between a (t = 0) and b (t = 1).
    Numbers interpolate(const Numbers& a, const Numbers& b, double t) const;

    int layers() const { return latents_.size(); }
    const Latent& layer(int l) const { return *latents_[l]; }
    int begin(int layer) const;  // index of the layer's first number in a latent vector; begin(layers()): its length
    int numbers() const { return begin(layers()); }
    std::string sizes() const;  // Z, or a comma-separated list if Z differs between layers
    bool has_density() const;   // whether all layers have a density (Latent::has_density)

  private:
    std::vector<std::shared_ptr<const Latent>> latents_;
};

}  // namespace masquerade
