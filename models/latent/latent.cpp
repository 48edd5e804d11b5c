// SPDX-License-Identifier: MIT
#include "models/latent/latent.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/cpu/parallel.h"
#include "models/latent/normals.h"

namespace masquerade {

double Latent::out_deviation() const { return 1 / std::sqrt(options.size); }

void Latent::between(const double* a, const double* b, double t, double* z) const {
    for (int i = 0; i < options.size; i++) z[i] = (1 - t) * a[i] + t * b[i];
    project(z);
}

double Latent::disturb(double* z, double change, Sequence& random) const {
    const int n = code_choices();
    std::vector<int> parts = read_code(z);
    double sum = 0;
    for (int& part : parts) {
        const int own = part;
        if (random.uniform() < change) part = random.below(n);
        sum += std::log(((part == own ? 1 - change : 0) + change / n) * n);
    }
    write_code(parts, z);
    return sum;
}

LatentLayer::LatentLayer(Parameters& p, const std::string& path, int width, double deviation, double eps,
                         const LatentOptions& o, const Latent* before)
    : latent(row_of(o.kind).make(&p, path, o, before)), path_(path) {
    if (o.projects) {
        in_ = Linear(p, path + ".in", width, latent->inputs(), deviation);
        out_ = Linear(p, path + ".out", o.size, width, o.out_deviation > 0 ? o.out_deviation : latent->out_deviation());
    } else if (o.size != width || latent->inputs() != width) {
        throw BadUsage("latent_projection=false: latent=", row_of(o.kind).name, " reads ", latent->inputs(),
                       " numbers and makes ", o.size, ", and a row has ", width, "; expected latent_size=", width,
                       " and a kind of latent that reads as many numbers as it makes");
    }
    if (o.norm) norm_ = LayerNorm(p, path + ".norm", width, eps);
    if (o.source_prior) prior_ = Linear(p, path + ".prior", width, latent->inputs(), deviation);
}

LatentSample LatentLayer::sample(Tape& tape, Tensor* x, const LatentNoise* noise, int layer,
                                 const LatentSamples& below) const {
    auto scope = tape.scope(path_);
    Tensor* y = latent->options.projects ? linear_unrounded(tape, x, in_.weight, in_.bias, "in")  // (B,inputs())
                                         : convert(tape, x, arithmetic_of(tape.dtype), "in");
    return latent->sample(tape, y, noise, layer, below);
}

void LatentLayer::use_prior(Tape& tape, Tensor* x, LatentSample& sample) const {
    auto scope = tape.scope(path_);
    latent->use_prior(tape, sample, linear_unrounded(tape, x, prior_.weight, prior_.bias, "prior"));
}

LatentSample LatentLayer::prior_sample(Tape& tape, Tensor* x, const LatentNoise* noise, int layer) const {
    auto scope = tape.scope(path_);
    return latent->sample(tape, linear_unrounded(tape, x, prior_.weight, prior_.bias, "prior"), noise, layer, {});
}

Tensor* LatentLayer::out(Tape& tape, Tensor* z) const {
    auto scope = tape.scope(path_);
    Tensor* u = convert(tape, z, tape.dtype, "z.stored");
    if (latent->options.projects) u = out_(tape, u, "out");
    return latent->options.norm ? norm_(tape, u, "norm") : u;
}

LatentSpace::LatentSpace(const LatentOptions& options, int layers) {
    for (int l = 0; l < layers; l++)
        latents_.push_back(row_of(options.kind).make(nullptr, "", options, l > 0 ? latents_.back().get() : nullptr));
}

LatentSpace::LatentSpace(const std::vector<LatentLayer>& layers) {
    for (const LatentLayer& layer : layers) latents_.push_back(layer.latent);
}

int LatentSpace::begin(int layer) const {
    int at = 0;
    for (int l = 0; l < layer; l++) at += latents_[l]->options.size;
    return at;
}

std::string LatentSpace::sizes() const {
    std::string all, one;
    bool same = true;
    for (const auto& latent : latents_) {
        const std::string size = std::to_string(latent->options.size);
        same = same && (one.empty() || one == size);
        all += (all.empty() ? "" : ",") + size;
        one = size;
    }
    return same ? one : all;
}

bool LatentSpace::has_density() const {
    return std::all_of(latents_.begin(), latents_.end(), [](const auto& latent) { return latent->has_density(); });
}

LatentNoise LatentSpace::noise(const std::vector<int>& names, std::uint64_t seed, std::uint32_t step) const {
    LatentNoise noise;
    Stream stream = make_stream(seed, "latent.noise", step);
    noise.w.assign(latents_.size(), std::vector<float>(names.size()));
    noise.w_by_log_kappa = noise.w;
    for (std::size_t l = 0; l < latents_.size(); l++) {
        const int Z = latents_[l]->options.size;
        std::vector<float>& e = noise.e.emplace_back(names.size() * Z);
        const SphereDistribution* const cosines = latents_[l]->cosines();
        parallel_for(std::int64_t(names.size()), 64, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t b = begin; b < end; b++) {
                if (cosines) {
                    const SphereDistribution::Sample w = cosines->at_share(uniform(stream.at(names[b], l, 0)[0]));
                    noise.w[l][b] = w.w, noise.w_by_log_kappa[l][b] = w.by_log_kappa;
                }
                set_normals(&e[b * Z], Z, stream, names[b], l, 1);  // block 0 is for the uniform number
            }
        });
    }
    return noise;
}

void LatentSpace::scale_noise(LatentNoise& noise, double share) const {
    for (std::size_t l = 0; l < latents_.size(); l++)
        for (std::size_t b = 0; b < noise.w[l].size(); b++)
            latents_[l]->scale_noise(share, noise.w[l][b], noise.w_by_log_kappa[l][b],
                                     &noise.e[l][b * latents_[l]->options.size]);
}

Numbers LatentSpace::prior(std::uint64_t seed, std::uint32_t line, std::uint32_t number) const {
    return redrawn(Numbers(numbers()), 0, numbers(), seed, line, number);
}

Numbers LatentSpace::redrawn(Numbers z, int from, int to, std::uint64_t seed, std::uint32_t line,
                             std::uint32_t number) const {
    Stream stream = make_stream(seed, "latent.prior", number);
    for (int l = 0; l < layers(); l++) {
        const int first = begin(l), Z = latents_[l]->options.size;
        if (to <= first || from >= first + Z) continue;
        double* own = z.data() + first;
        const Numbers kept(own, own + Z);
        const Numbers drawn = normals(stream, line, l, Z);
        std::copy(drawn.begin(), drawn.end(), own);
        latents_[l]->draw(own);
        for (int i = 0; i < Z; i++)
            if (first + i < from || first + i >= to) own[i] = kept[i];
        if (first < from || first + Z > to) latents_[l]->project(own);
    }
    return z;
}

double LatentSpace::constant_kl() const {
    double sum = 0;
    for (const auto& latent : latents_) sum += latent->constant_kl();
    return sum;
}

void LatentSpace::project(Numbers& z) const {
    for (int l = 0; l < layers(); l++) latents_[l]->project(z.data() + begin(l));
}

void LatentSpace::project_stored(Numbers& z) const {
    Numbers nearest = z;
    project(nearest);
    const auto is_near = [](double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(1.0, std::abs(a)); };
    if (!std::equal(z.begin(), z.end(), nearest.begin(), is_near)) z = std::move(nearest);
}

LatentSpace::Code LatentSpace::code_of(const Numbers& latent) const {
    Code code;
    for (int l = 0; l < layers(); l++) code.push_back(layer(l).read_code(latent.data() + begin(l)));
    return code;
}

Numbers LatentSpace::latent_of(const Code& code) const {
    Numbers latent(numbers());
    for (int l = 0; l < layers(); l++) layer(l).write_code(code[l], latent.data() + begin(l));
    return latent;
}

Numbers LatentSpace::interpolate(const Numbers& a, const Numbers& b, double t) const {
    Numbers z(a.size());
    for (int l = 0; l < layers(); l++) latents_[l]->between(&a[begin(l)], &b[begin(l)], t, z.data() + begin(l));
    return z;
}

}  // namespace masquerade
