// SPDX-License-Identifier: MIT
// Discrete latents z of an input y. Rounding and replacing have no useful gradient, so the backward pass treats them as
// the identity (straight-through estimator).
//   fsq  z = tanh y, with each number rounded to the nearest of `levels` values                     Mentzer et al. 2023
//   vq   each group of numbers of y is replaced by the nearest row of its codebook            van den Oord et al. 2017
#include <algorithm>
#include <cmath>

#include "engine/tensor/numbers.h"
#include "models/latent/kinds.h"

namespace masquerade {
namespace {

// Returns the probability that a standard normal number is below x.
double normal_share(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

// Base class of fsq and vq. z is one of finitely many points. The input y determines z, and the prior is uniform over
// the points, so the KL is log(number of points).
class Points : public Latent {
  public:
    using Latent::Latent;
    double constant_kl() const override { return code_parts() * std::log(code_choices()); }
    double log_ratio(const double*, const double*, const double*) const override { return constant_kl(); }
    void project(double* z) const override { write_code(read_code(z), z); }
    // On entry, z holds standard normal numbers; on return, z is a uniformly drawn point. z consists of groups of D
    // numbers, and the code of a point has one part for each group: an index below code_choices(). The first number of
    // a group selects its part: the normal distribution function maps this number to a uniform number in (0, 1).
    void draw(double* z) const override {
        const int n = code_choices(), D = options.size / code_parts();
        std::vector<int> parts;
        for (int i = 0; i < code_parts(); i++) parts.push_back(std::min(n - 1, int(normal_share(z[i * D]) * n)));
        write_code(parts, z);
    }
};

// fsq: z is a point of a grid. The forward pass rounds tanh y to the nearest point; the backward pass ignores the
// rounding.
class Levels : public Points {
  public:
    using Points::Points;
    double out_deviation() const override { return 1.4 / std::sqrt(options.size); }
    LatentSample sample(Tape& tape, Tensor* y, const LatentNoise*, int, const LatentSamples&) const override {
        Tensor* t = tanh(tape, y, "tanh");  // (B,Z): Z numbers per document
        return {straight_through(tape, t, nearest_level(tape, t, options.levels, "level"), "z"), y};
    }
    int code_parts() const override { return options.size; }
    int code_choices() const override { return options.levels; }
    std::vector<int> read_code(const double* z) const override {
        const double half = (options.levels - 1) / 2.0;
        std::vector<int> parts;
        // The order of the arguments of max turns NaN into level 0.
        for (int i = 0; i < options.size; i++)
            parts.push_back(int(std::min(std::max(0.0, std::floor((z[i] + 1) * half + 0.5)), 2 * half)));
        return parts;
    }
    void write_code(const std::vector<int>& parts, double* z) const override {
        for (int i = 0; i < options.size; i++) z[i] = 2.0 * parts[i] / (options.levels - 1) - 1;
    }
};

// vq: y is divided into groups of D numbers, and each group is replaced by the nearest row of the group's codebook. A
// row of a codebook is a moving average of the vectors (of D numbers) that it replaced. A row that replaces hardly any
// vectors is set to a randomly drawn vector. Codebooks are states, which the optimiser does not update.
class Codes : public Points {
  public:
    Codes(Parameters* p, const std::string& path, const LatentOptions& o, const Latent* before)
        : Points(p, path, o, before), path_(path) {
        if (o.size % o.groups) throw BadUsage("latent_size ", o.size, " does not divide into groups=", o.groups);
        if (!p) return;
        const std::int64_t rows = std::int64_t(o.groups) * o.codes, D = o.size / o.groups;
        codes_ = p->add_state(path + ".codes", {rows, D}, {Init::normal, 1});
        counts_ = p->add_state(path + ".counts", {rows}, {Init::zeros});
        sums_ = p->add_state(path + ".sums", {rows, D}, {Init::zeros});
    }
    LatentSample sample(Tape& tape, Tensor* y, const LatentNoise*, int, const LatentSamples&) const override {
        const NearestCode nearest = nearest_code(tape, y, codes_, options.groups, "nearest");
        LatentSample s;
        s.y = y;
        s.z = straight_through(tape, y, nearest.q, "z");  // (B,Z): Z numbers per document
        s.loss = distance(tape, y, nearest.q, options.commitment, "commitment");
        s.code = nearest.code;
        return s;
    }
    bool learns() const override { return true; }
    void learn(const View& y, const View& code, const View& weights, std::uint64_t seed,
               std::uint32_t step) const override {
        const CodeRule rule{options.groups, options.decay, 0.1, make_stream(seed, path_ + ".dead", step)};
        learn_codes(y, code, weights, rule, codes_->view(), counts_->view(), sums_->view());
    }
    int code_parts() const override { return options.groups; }
    int code_choices() const override { return options.codes; }
    std::vector<int> read_code(const double* z) const override {
        const int D = options.size / options.groups;
        const Numbers codes = numbers_of(codes_->view());
        std::vector<int> parts(options.groups);
        for (int g = 0; g < options.groups; g++) {
            const auto distance = [&](int m) {
                double sum = 0;
                for (int i = 0; i < D; i++) sum += std::pow(z[g * D + i] - codes[(g * options.codes + m) * D + i], 2);
                return sum;
            };
            double least = distance(parts[g] = 0);
            for (int m = 1; m < options.codes; m++)
                if (const double d = distance(m); d < least) parts[g] = m, least = d;
        }
        return parts;
    }
    void write_code(const std::vector<int>& parts, double* z) const override {
        const int D = options.size / options.groups;
        const OnHost codes(codes_->view());
        for (int g = 0; g < options.groups; g++)
            for (int i = 0; i < D; i++) z[g * D + i] = codes[(g * options.codes + parts[g]) * D + i];
    }

  private:
    std::string path_;
    // codes_ (groups * M, D): the codebooks, with M rows per group. counts_ (groups * M): moving average of the number
    // of vectors that each row replaced. sums_ (groups * M, D): moving average of the sum of these vectors.
    Tensor *codes_ = nullptr, *counts_ = nullptr, *sums_ = nullptr;
};

}  // namespace

const MakeLatent make_levels = make_latent<Levels>, make_codes = make_latent<Codes>;

}  // namespace masquerade
