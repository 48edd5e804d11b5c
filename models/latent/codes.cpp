// SPDX-License-Identifier: MIT
// Latents of finitely many points; the gradient goes straight through to what was rounded.
//   fsq  z = tanh y, each number rounded to one of L levels                                           Mentzer et al. 2023
//   vq   z = the nearest row of a codebook, for each group of numbers                         van den Oord et al. 2017
#include <algorithm>
#include <cmath>

#include "engine/tensor/numbers.h"
#include "models/latent/kinds.h"

namespace masquerade {
namespace {

// A part that has become any of n alike with the share `change`: log q - log p of what it is now.
double log_ratio_of_part(bool same, double change, int n) { return std::log(((same ? 1 - change : 0) + change / n) * n); }

double normal_share(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

// Codes are points of a grid: z goes forward, the gradient as if it were tanh y.
class Levels : public Latent {
  public:
    using Latent::Latent;
    double out_deviation() const override { return 1.4 / std::sqrt(double(options.size)); }
    LatentSample sample(Tape& tape, Tensor* y, const LatentNoise*, int, const std::vector<LatentSample>&) const override {
        Tensor* t = tanh(tape, y, "tanh");  // (B,Z)
        return {straight_through(tape, t, nearest_level(tape, t, options.levels, "level"), "z"), y};
    }
    double constant_kl() const override { return options.size * std::log(double(options.levels)); }
    double log_ratio(const double*, const double*, const double*) const override { return constant_kl(); }
    int code_parts() const override { return options.size; }
    void project(double* z) const override {
        const double half = (options.levels - 1) / 2.0;
        for (int i = 0; i < options.size; i++) z[i] = std::clamp(std::floor((z[i] + 1) * half + 0.5), 0.0, 2 * half) / half - 1;
    }
    double disturb(double* z, double change, Sequence& random) const override {
        const int L = options.levels;
        double sum = 0;
        for (int i = 0; i < options.size; i++) {
            const double own = z[i];
            if (random.uniform() < change) z[i] = 2.0 * random.below(std::uint32_t(L)) / (L - 1) - 1;
            sum += log_ratio_of_part(std::fabs(z[i] - own) < 0.5 / L, change, L);
        }
        return sum;
    }
    void draw(double* z) const override {
        const int L = options.levels;
        for (int i = 0; i < options.size; i++) z[i] = 2.0 * std::min(L - 1, int(normal_share(z[i]) * L)) / (L - 1) - 1;
    }
};

// Groups of numbers are rows of a codebook, which follows them as moving averages: states, which no optimiser moves.
class Codes : public Latent {
  public:
    Codes(Parameters* p, const std::string& path, const LatentOptions& o) : Latent(o), path_(path) {
        if (o.size % o.groups) throw BadUsage(text("latent_size ", o.size, " does not divide into groups=", o.groups));
        if (!p) return;
        const std::int64_t rows = std::int64_t(o.groups) * o.codes, D = o.size / o.groups;
        codes_ = p->add_state(path + ".codes", {rows, D}, {Init::normal, 1});
        counts_ = p->add_state(path + ".counts", {rows}, {Init::zeros});
        sums_ = p->add_state(path + ".sums", {rows, D}, {Init::zeros});
    }
    LatentSample sample(Tape& tape, Tensor* y, const LatentNoise*, int, const std::vector<LatentSample>&) const override {
        const NearestCode nearest = nearest_code(tape, y, codes_, options.groups, "nearest");
        LatentSample s;
        s.y = y;
        s.z = straight_through(tape, y, nearest.q, "z");  // (B,Z)
        s.loss = distance(tape, y, nearest.q, options.commitment, "commitment");
        s.code = nearest.code;
        return s;
    }
    void learn(Tape& tape, const LatentSample& s, Tensor* weights) const override {
        const CodeRule rule{options.groups, options.decay, 0.1, tape.stream(path_ + ".dead")};
        learn_codes(s.y->view(), s.code->view(), weights->view(), rule, codes_->view(), counts_->view(), sums_->view());
    }
    double constant_kl() const override { return options.groups * std::log(double(options.codes)); }
    double log_ratio(const double*, const double*, const double*) const override { return constant_kl(); }
    int code_parts() const override { return options.groups; }
    void project(double* z) const override {
        const int D = options.size / options.groups;
        const OnHost codes(codes_->view());
        for (int g = 0; g < options.groups; g++) {
            const auto distance = [&](int m) {
                double sum = 0;
                for (int i = 0; i < D; i++) sum += std::pow(z[g * D + i] - codes[(g * options.codes + m) * D + i], 2);
                return sum;
            };
            int best = 0;
            double least = distance(0);
            for (int m = 1; m < options.codes; m++)
                if (const double d = distance(m); d < least) best = m, least = d;
            take(codes, g, best, z);
        }
    }
    double disturb(double* z, double change, Sequence& random) const override {
        const OnHost codes(codes_->view());
        const int D = options.size / options.groups;
        double sum = 0;
        for (int g = 0; g < options.groups; g++) {
            const std::vector<double> own(z + g * D, z + (g + 1) * D);
            if (random.uniform() < change) take(codes, g, int(random.below(std::uint32_t(options.codes))), z);
            sum += log_ratio_of_part(std::equal(own.begin(), own.end(), z + g * D), change, options.codes);
        }
        return sum;
    }
    void draw(double* z) const override {
        const OnHost codes(codes_->view());
        for (int g = 0; g < options.groups; g++) {
            const double u = normal_share(z[g * (options.size / options.groups)]);
            take(codes, g, std::min(options.codes - 1, int(u * options.codes)), z);
        }
    }

  private:
    void take(const OnHost& codes, int group, int code, double* z) const {
        const int D = options.size / options.groups;
        for (int i = 0; i < D; i++) z[group * D + i] = codes[(group * options.codes + code) * D + i];
    }

    std::string path_;
    Tensor *codes_ = nullptr, *counts_ = nullptr, *sums_ = nullptr;  // (groups M, Z / groups), (groups M), as codes
};

}  // namespace

MadeLatent make_levels(Parameters*, const std::string&, const LatentOptions& o, const Latent*) {
    return std::make_shared<Levels>(o);
}
MadeLatent make_codes(Parameters* p, const std::string& path, const LatentOptions& o, const Latent*) {
    return std::make_shared<Codes>(p, path, o);
}

}  // namespace masquerade
