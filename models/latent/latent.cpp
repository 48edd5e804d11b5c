// SPDX-License-Identifier: MIT
#include "models/latent/latent.h"

#include <algorithm>
#include <cmath>

#include "engine/math/normal.h"

namespace masquerade {
namespace {

// Where Out starts: such that u has about unit numbers, as a token after its norm has. A start of 0.02 lets the rows of
// the latents drown among the others.
double out_deviation(const LatentOptions& o) {
    return o.kind == LatentKind::vmf ? 1.0 : 1.0 / std::sqrt(double(o.size));
}

}  // namespace

LatentLayer::LatentLayer(Parameters& p, const std::string& path, int width, double deviation,
                         const LatentOptions& o)
    : options_(o),
      in_(p, path + ".in", width, o.kind == LatentKind::gaussian ? 2 * o.size : o.size, deviation),
      out_(p, path + ".out", o.size, width, out_deviation(o)),
      path_(path) {}

LatentSample LatentLayer::sample(Tape& tape, Tensor* x, const LatentNoise* noise, int layer) const {
    auto scope = tape.scope(path_);
    const std::int64_t B = x->rows(), Z = options_.size;
    LatentSample s;
    s.y = linear_unrounded(tape, x, in_.weight, in_.bias, "in");  // (B,Z) or (B,2Z), A
    auto e = [&] { return tape.constant("e", {B, Z}, s.y->dtype, noise->e[std::size_t(layer)].data()); };
    if (options_.kind == LatentKind::none) {
        s.z = s.y;
    } else if (options_.kind == LatentKind::vmf) {
        s.z = normalise(tape, s.y, "mean");  // (B,Z)
        if (noise) {
            Tensor* w = tape.constant("w", {B}, s.y->dtype, noise->w[std::size_t(layer)].data());
            s.z = vmf_sample(tape, s.z, w, e(), "z");
        }
    } else {
        s.kl = gaussian_kl(tape, s.y, "kl");  // (B)
        // The mean path is a sample without noise.
        std::vector<float> zero(noise ? 0 : std::size_t(B * Z), 0.f);
        Tensor* draw = noise ? e() : tape.constant("e", {B, Z}, s.y->dtype, zero.data());
        s.z = gaussian_sample(tape, s.y, draw, "z");
    }
    return s;
}

Tensor* LatentLayer::out(Tape& tape, Tensor* z) const {
    auto scope = tape.scope(path_);
    return out_(tape, convert(tape, z, tape.dtype, "z.stored"), "out");
}

LatentSpace::LatentSpace(const LatentOptions& options, int layers) : options_(options), layers_(layers) {
    if (options.kind == LatentKind::vmf && layers > 0)
        vmf_ = std::make_shared<const VonMisesFisher>(options.size, options.kappa);
}

LatentNoise LatentSpace::noise(const std::vector<int>& names, std::uint64_t seed, std::uint32_t step) const {
    LatentNoise noise;
    const int Z = options_.size;
    Stream stream = make_stream(seed, "latent.noise", step);
    noise.w.assign(std::size_t(layers_), std::vector<float>(names.size()));
    noise.e.assign(std::size_t(layers_), std::vector<float>(names.size() * std::size_t(Z)));
    for (int l = 0; l < layers_; l++)
        for (std::size_t b = 0; b < names.size(); b++) {
            auto document = std::uint32_t(names[b]), layer = std::uint32_t(l);
            if (vmf_)
                noise.w[std::size_t(l)][b] = float(vmf_->quantile(uniform(stream.at(document, layer, 0)[0])));
            for (int i = 0; i < Z; i += 4) {
                FourNormals n = normal4(stream.at(document, layer, std::uint32_t(1 + i / 4)));
                for (int k = 0; k < 4 && i + k < Z; k++)
                    noise.e[std::size_t(l)][b * std::size_t(Z) + std::size_t(i + k)] = n[k];
            }
        }
    return noise;
}

std::vector<double> LatentSpace::prior(std::uint64_t seed, std::uint32_t line, std::uint32_t number) const {
    const int Z = options_.size;
    std::vector<double> z(std::size_t(layers_ * Z));
    Stream stream = make_stream(seed, "latent.prior", number);
    for (int l = 0; l < layers_; l++)
        for (int i = 0; i < Z; i += 4) {
            FourNormals n = normal4(stream.at(line, std::uint32_t(l), std::uint32_t(i / 4)));
            for (int k = 0; k < 4 && i + k < Z; k++) z[std::size_t(l * Z + i + k)] = double(n[k]);
        }
    project(z);
    return z;
}

double LatentSpace::constant_kl() const { return vmf_ ? layers_ * vmf_->kl() : 0; }

double LatentSpace::log_ratio(const double* z, const double* y) const {
    const int Z = options_.size;
    if (options_.kind == LatentKind::none) return 0;
    if (vmf_) {
        double dot = 0, norm = 0;
        for (int i = 0; i < Z; i++) {
            dot += z[i] * y[i];
            norm += y[i] * y[i];
        }
        return vmf_->log_density(dot / std::max(std::sqrt(norm), 1e-6)) - vmf_->log_uniform_density();
    }
    double sum = 0;
    for (int i = 0; i < Z; i++) {
        double l = std::clamp(y[Z + i], -8.0, 8.0), d = z[i] - y[i];
        sum += 0.5 * (z[i] * z[i] - d * d * std::exp(-l) - l);
    }
    return sum;
}

double LatentSpace::log_prior(const std::vector<double>& z) const {
    if (vmf_) return layers_ * vmf_->log_uniform_density();
    double square = 0;
    for (double x : z) square += x * x;
    return -0.5 * square - 0.5 * double(z.size()) * std::log(2 * 3.14159265358979323846);
}

void LatentSpace::project(std::vector<double>& latent) const {
    if (options_.kind != LatentKind::vmf) return;
    const int Z = options_.size;
    for (int l = 0; l < layers_; l++) {
        double* z = latent.data() + l * Z;
        double square = 0;
        for (int i = 0; i < Z; i++) square += z[i] * z[i];
        double scale = 1 / std::max(std::sqrt(square), 1e-6);
        for (int i = 0; i < Z; i++) z[i] *= scale;
    }
}

std::vector<double> LatentSpace::interpolate(const std::vector<double>& a, const std::vector<double>& b,
                                             double t) const {
    const int Z = options_.size;
    std::vector<double> z(a.size());
    for (int l = 0; l < layers_; l++) {
        double from = 1 - t, to = t;
        if (options_.kind == LatentKind::vmf) {
            double dot = 0;
            for (int i = 0; i < Z; i++) dot += a[std::size_t(l * Z + i)] * b[std::size_t(l * Z + i)];
            double angle = std::acos(std::clamp(dot, -1.0, 1.0));
            if (std::sin(angle) > 1e-6) {
                from = std::sin((1 - t) * angle) / std::sin(angle);
                to = std::sin(t * angle) / std::sin(angle);
            }
        }
        for (int i = l * Z; i < (l + 1) * Z; i++)
            z[std::size_t(i)] = from * a[std::size_t(i)] + to * b[std::size_t(i)];
    }
    project(z);
    return z;
}

}  // namespace masquerade
