// SPDX-License-Identifier: MIT
#include "models/latent/latent.h"

#include <cmath>

#include "engine/math/normal.h"

namespace masquerade {

double Latent::out_deviation() const { return 1.0 / std::sqrt(double(options.size)); }

void Latent::between(const double* a, const double* b, double t, double* z) const {
    for (int i = 0; i < options.size; i++) z[i] = (1 - t) * a[i] + t * b[i];
    project(z);
}

LatentLayer::LatentLayer(Parameters& p, const std::string& path, int width, double deviation, const LatentOptions& o,
                         const Latent* before)
    : latent(row_of(o.kind).make(&p, path, o, before)),
      in_(p, path + ".in", width, latent->inputs(), deviation),
      out_(p, path + ".out", o.size, width, latent->out_deviation()),
      path_(path) {}

LatentSample LatentLayer::sample(Tape& tape, Tensor* x, const LatentNoise* noise, int layer,
                                 const std::vector<LatentSample>& below) const {
    auto scope = tape.scope(path_);
    Tensor* y = linear_unrounded(tape, x, in_.weight, in_.bias, "in");  // (B,inputs()), A
    return latent->sample(tape, y, noise, layer, below);
}

Tensor* LatentLayer::out(Tape& tape, Tensor* z) const {
    auto scope = tape.scope(path_);
    return out_(tape, convert(tape, z, tape.dtype, "z.stored"), "out");
}

LatentSpace::LatentSpace(const LatentOptions& options, int layers) : options_(options) {
    for (int l = 0; l < layers; l++)
        latents_.push_back(row_of(options.kind).make(nullptr, "", options, l > 0 ? latents_.back().get() : nullptr));
}

LatentSpace::LatentSpace(const LatentOptions& options, const std::vector<LatentLayer>& layers) : options_(options) {
    for (const LatentLayer& layer : layers) latents_.push_back(layer.latent);
}

LatentNoise LatentSpace::noise(const std::vector<int>& names, std::uint64_t seed, std::uint32_t step) const {
    LatentNoise noise;
    const int Z = options_.size;
    Stream stream = make_stream(seed, "latent.noise", step);
    noise.w.assign(latents_.size(), std::vector<float>(names.size()));
    noise.w_by_log_kappa = noise.w;
    noise.e.assign(latents_.size(), std::vector<float>(names.size() * std::size_t(Z)));
    for (std::size_t l = 0; l < latents_.size(); l++)
        for (std::size_t b = 0; b < names.size(); b++) {
            auto document = std::uint32_t(names[b]), layer = std::uint32_t(l);
            const SphereDistribution::Sample along = latents_[l]->radial(uniform(stream.at(document, layer, 0)[0]));
            noise.w[l][b] = float(along.w), noise.w_by_log_kappa[l][b] = float(along.by_log_kappa);
            for (int i = 0; i < Z; i += 4) {
                FourNormals n = normal4(stream.at(document, layer, std::uint32_t(1 + i / 4)));
                for (int k = 0; k < 4 && i + k < Z; k++) noise.e[l][b * std::size_t(Z) + std::size_t(i + k)] = n[k];
            }
        }
    return noise;
}

std::vector<double> LatentSpace::prior(std::uint64_t seed, std::uint32_t line, std::uint32_t number) const {
    const int Z = options_.size;
    std::vector<double> z(std::size_t(layers() * Z));
    Stream stream = make_stream(seed, "latent.prior", number);
    for (int l = 0; l < layers(); l++)
        for (int i = 0; i < Z; i += 4) {
            FourNormals n = normal4(stream.at(line, std::uint32_t(l), std::uint32_t(i / 4)));
            for (int k = 0; k < 4 && i + k < Z; k++) z[std::size_t(l * Z + i + k)] = double(n[k]);
        }
    for (std::size_t l = 0; l < latents_.size(); l++) latents_[l]->draw(&z[l * std::size_t(Z)]);
    return z;
}

double LatentSpace::constant_kl() const {
    double sum = 0;
    for (const auto& latent : latents_) sum += latent->constant_kl();
    return sum;
}

void LatentSpace::project(std::vector<double>& z) const {
    for (std::size_t l = 0; l < latents_.size(); l++) latents_[l]->project(&z[l * std::size_t(options_.size)]);
}

std::vector<double> LatentSpace::interpolate(const std::vector<double>& a, const std::vector<double>& b, double t) const {
    std::vector<double> z(a.size());
    for (std::size_t l = 0; l < latents_.size(); l++) {
        const std::size_t at = l * std::size_t(options_.size);
        latents_[l]->between(&a[at], &b[at], t, &z[at]);
    }
    return z;
}

}  // namespace masquerade
