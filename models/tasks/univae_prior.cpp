// SPDX-License-Identifier: MIT
#include "models/tasks/univae_prior.h"

#include "engine/tensor/numbers.h"
#include "engine/io/checksum.h"
#include "models/density/rows.h"

namespace masquerade {
namespace {

constexpr std::size_t at_a_time = 128;
constexpr std::size_t sampled =
    20000;  // sentences whose posteriors are sampled: a few rows for each of D^2 numbers

// (n, K Z): the latents of sentences, by the mean path or drawn from their posteriors.
std::vector<float> latents_of(const UniVae& model, const std::vector<const Sentence*>& sentences,
                              std::size_t n, bool drawn, std::uint64_t seed) {
    const std::size_t K = std::size_t(model.options.latent_layers), Z = std::size_t(model.space.size());
    std::vector<float> all(n * K * Z);
    Arena arena(model.backbone.device(), Blocks::kept);
    Tape tape(arena, model.backbone.storage());
    for (std::size_t first = 0; first < n; first += at_a_time) {
        const std::size_t count = std::min(at_a_time, n - first);
        UniVaeBatch batch = model.batch({&sentences[first], &sentences[first] + count});
        LatentNoise noise;
        if (drawn) noise = model.space.noise(batch.names(), seed, 0);
        tape.begin("prior");
        std::vector<LatentSample> samples = model.encode(tape, batch, drawn ? &noise : nullptr);
        for (std::size_t l = 0; l < K; l++) {
            const OnHost here(samples[l].z->view());
            const float* z = here.view().as<float>();
            for (std::size_t b = 0; b < count; b++)
                std::copy_n(z + b * Z, Z, all.begin() + std::ptrdiff_t(((first + b) * K + l) * Z));
        }
        tape.end();
    }
    return all;
}

}  // namespace

LatentPrior fit_prior(const UniVae& model, const std::vector<Sentence>& sentences, int most,
                      std::uint64_t seed) {
    if (model.options.latent_layers == 0)
        throw BadUsage("a language model without latents (latent_layers=0) has no prior to fit");
    if (sentences.empty()) throw BadInput("there is no training sentence to fit a prior to");
    std::vector<const Sentence*> chosen;
    for (const Sentence& s : sentences) chosen.push_back(&s);
    Sequence random(seed, "prior.sentences");
    const std::size_t n = std::min(chosen.size(), std::size_t(std::max(1, most)));
    for (std::size_t i = 0; i < n; i++)
        std::swap(chosen[i], chosen[i + random.below(std::uint32_t(chosen.size() - i))]);
    std::vector<float> codes = latents_of(model, chosen, n, false, seed),
                       samples = latents_of(model, chosen, std::min(n, sampled), true, seed);
    const std::int64_t D = std::int64_t(model.space.layers()) * model.space.size();
    auto view = [&](const std::vector<float>& numbers) {
        return view_of(numbers, {std::int64_t(numbers.size()) / D, D}, "prior.latents");
    };
    return LatentPrior::fit(model.space, view(codes), view(samples), seed);
}

std::uint64_t checksum_of(const Parameters& parameters) {
    const OnHost values(parameters.values());
    std::uint64_t sum = 0;
    for (const Tensor& p : parameters.all()) {
        const View weights = parameters.slice(values.view(), p);
        sum = checksum(weights.data, weights.bytes(), sum);
    }
    return sum;
}

}  // namespace masquerade
