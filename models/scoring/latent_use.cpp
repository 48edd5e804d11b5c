// SPDX-License-Identifier: MIT
#include "models/scoring/latent_use.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/ops/cpu/parallel.h"
#include "engine/tensor/numbers.h"
#include "models/tasks/univae_prior.h"

namespace masquerade {
namespace {

// The numbers of one latent layer (latent.h) for a sentence. y is the output of the layer's linear map In, and
// determines the posterior q(z | y). z is a sample of this posterior, and `mean` is the mean of this posterior.
struct Point {
    Numbers z, mean, y;
};
using Points = std::vector<std::vector<Point>>;  // indexed by sentence, then by latent layer

Vectors rows_of(const Tensor* t) {
    const Numbers all = numbers_of(t->view());
    Vectors rows;
    for (auto at = all.begin(); at < all.end(); at += t->columns()) rows.emplace_back(at, at + t->columns());
    return rows;
}

// Encodes every sentence without noise to compute the y of each latent layer, and then samples the z of each layer from
// q(z | y). This y does not depend on samples of lower layers. Therefore, q(z | y) can be computed for the z of one
// sentence and the y of another sentence.
Points points_of(const UniVae& model, const Sentences& sentences, std::uint64_t seed) {
    Points all(sentences.size());
    each_batch(model, sentences, [&](Tape& tape, const Batch& batch, std::size_t first) {
        const LatentNoise noise = model.space.noise(batch.names(), seed, 0);
        tape.begin("encode");
        const LatentSamples means = model.encode(tape, batch, nullptr);
        LatentSamples samples;
        for (std::size_t l = 0; l < means.size(); l++)
            samples.push_back(model.latents[l].latent->sample(tape, means[l].y, &noise, int(l), means));
        for (std::size_t l = 0; l < means.size(); l++) {
            const Vectors z = rows_of(samples[l].z), mean = rows_of(means[l].z), y = rows_of(means[l].y);
            for (std::size_t b = 0; b < z.size(); b++) all[first + b].push_back({z[b], mean[b], y[b]});
        }
        tape.end();
    });
    return all;
}

// The time grows with the square of the number of points.
double information(const UniVae& model, const Points& points) {
    Numbers terms(points.size());
    parallel_each(std::int64_t(points.size()), [&](std::int64_t at) {
        const auto i = std::size_t(at);
        Numbers ratios(points.size());
        for (std::size_t b = 0; b < points.size(); b++) {
            ratios[b] = 0;
            for (std::size_t l = 0; l < points[i].size(); l++) {
                const Latent& latent = *model.latents[l].latent;
                const Point &own = points[i][l], &other = points[b][l];
                if (latent.code_parts() > 0)
                    ratios[b] -= own.z == other.z ? 0 : INFINITY;
                else
                    // log_posterior() returns log q(z | y) plus a term that depends only on z. The term is therefore
                    // the same for all sentences b, and cancels below.
                    ratios[b] += latent.log_posterior(own.z.data(), other.y.data());
            }
        }
        const double top = *std::max_element(ratios.begin(), ratios.end());
        double others = 0;
        for (double r : ratios) others += std::exp(r - top);
        terms[i] = ratios[i] - top - std::log(others / points.size());
    });
    return std::accumulate(terms.begin(), terms.end(), 0.0) / points.size();
}

}  // namespace

LatentUse latent_use(const UniVae& model, const Sentences& sentences, std::uint64_t seed) {
    const Points points = points_of(model, sentences, seed);
    const double n = points.size();
    LatentUse use;
    for (int l = 0; l < model.options.latent_layers; l++) {
        for (std::size_t i = 0; i < points.at(0)[l].mean.size(); i++, use.units++) {
            double mean = 0, variance = 0;
            for (const auto& layers : points) mean += layers[l].mean[i] / n;
            for (const auto& layers : points) variance += std::pow(layers[l].mean[i] - mean, 2) / std::max(1.0, n - 1);
            use.active += variance > 0.01;
        }
    }
    use.mutual_information = information(model, points);
    return use;
}

Swaps swap_latents(const UniVae& model, UniVaeDecoder& decoder, const Sentences& sentences,
                   const FrequentTokens& frequent, std::uint64_t seed, const SearchOptions& search) {
    const int K = model.options.latent_layers;
    const std::size_t n = sentences.size();
    const std::vector<DecodeRequest> plain = reconstructions(model, sentences);
    const auto written = [&](int from, int to) {
        std::vector<DecodeRequest> requests = plain;
        for (std::size_t i = 0; i < n; i++)
            model.space.replace(requests[i].latent, plain[(i + 1) % n].latent, from, to);
        return decoder.write(requests, search, seed);
    };
    // Returns the mean, over all i, of the overlap of some[i] with own[i + further], and the confidence interval of
    // this mean. own[i] is the text decoded from the latents of sentence i. some[i] is own[i], or the text decoded
    // after some of these latents were replaced. In struct Swap, A is sentence i, and B is sentence i + 1. Thus,
    // some[i] is compared with the text of A if further = 0, and with the text of B if further = 1.
    const auto common = [&](double (*overlap)(const Tokens&, const Tokens&, const FrequentTokens&), const Texts& some,
                            const Texts& own, std::size_t further) {
        Numbers values;
        for (std::size_t i = 0; i < n; i++) values.push_back(overlap(some[i], own[(i + further) % n], frequent));
        return bootstrap(values, seed);
    };
    const Texts own = written(0, 0);
    Swaps all;
    all.content = common(content_overlap, own, own, 1);
    all.form = common(form_overlap, own, own, 1);
    std::vector<std::pair<int, int>> parts;
    for (int l = 0; l < K; l++) parts.emplace_back(l, l + 1);
    if (K > 2) parts.emplace_back(0, K / 2), parts.emplace_back(K / 2, K);
    for (const auto& [from, to] : parts) {
        const Texts some = written(from, to);
        all.layers.push_back({from, to, common(content_overlap, some, own, 0), common(content_overlap, some, own, 1),
                              common(form_overlap, some, own, 0), common(form_overlap, some, own, 1)});
    }
    return all;
}

}  // namespace masquerade
