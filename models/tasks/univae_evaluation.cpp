// SPDX-License-Identifier: MIT
#include "models/tasks/univae_evaluation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/tensor/numbers.h"
#include "models/tasks/univae_prior.h"

namespace masquerade {
namespace {

std::vector<Tensor*> points(const std::vector<LatentSample>& samples) {
    std::vector<Tensor*> z;
    for (const LatentSample& s : samples) z.push_back(s.z);
    return z;
}

// Returns -log p(x|z) of every document x with the latents z. If `h` is not null, adds the loss of the i-th target
// token of each document to h->at_place[i], and counts it in h->reach[i].
std::vector<double> sentence_losses(Tape& tape, const UniVae& model, const Batch& batch, const std::vector<Tensor*>& z,
                                    HeldOut* h = nullptr) {
    Tensor* states = model.backbone.head(tape, model.decode(tape, batch, z));
    const std::vector<double> losses =
        numbers_of(model.backbone.token_losses(tape, states, batch.labels.tokens)->view());
    std::vector<double> sums(std::size_t(batch.documents));
    for (std::size_t b = 0; b < sums.size(); b++)
        for (int first = batch.labels.begin[b], row = first; row < batch.labels.begin[b + 1]; row++) {
            const auto place = std::size_t(row - first);
            sums[b] += losses[std::size_t(row)];
            if (!h) continue;
            if (place == h->reach.size()) h->at_place.push_back(0), h->reach.push_back(0);
            h->at_place[place] += losses[std::size_t(row)];
            h->reach[place]++;
        }
    return sums;
}

double sum_of(const std::vector<double>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }

// Returns z with its rows shifted by one: every document gets the z of the previous document. The first document gets
// `before`, the last row of z in the previous batch. In the first batch, `before` is empty, and the first document gets
// the last row of z. Sets `before` to the last row of z.
Tensor* neighbours(Tape& tape, const Tensor* z, std::vector<double>& before) {
    std::vector<double> moved = numbers_of(z->view());
    std::rotate(moved.begin(), moved.end() - z->columns(), moved.end());
    std::vector<double> last(moved.begin(), moved.begin() + z->columns());
    if (!before.empty()) std::copy(before.begin(), before.end(), moved.begin());
    before = std::move(last);
    return tape.constant("other_z", z->shape, z->dtype, moved.data());
}

// Returns log q(z | x) - log p(z) for every document. Each continuous latent layer l contributes
// log q(z_l | z_<l, x) - log p(z_l | z_<l), where z_<l are the samples of the layers below.
std::vector<double> log_ratios(const UniVae& model, const std::vector<LatentSample>& samples, std::size_t documents) {
    std::vector<double> sums(documents);
    for (std::size_t l = 0; l < samples.size(); l++) {
        if (model.latents[l].latent->code_parts() > 0) continue;
        const LatentSample& s = samples[l];
        const std::vector<double> z = numbers_of(s.z->view()), y = numbers_of(s.y->view()),
                                  prior = s.prior ? numbers_of(s.prior->view()) : std::vector<double>();
        for (std::size_t b = 0; b < documents; b++)
            sums[b] +=
                model.latents[l].latent->log_ratio(&z[b * std::size_t(s.z->columns())],
                                                   &y[b * std::size_t(s.y->columns())],
                                                   s.prior ? &prior[b * std::size_t(s.prior->columns())] : nullptr);
    }
    return sums;
}

// For discrete latents: replaces the latents z by draws from a proposal q. The posterior is a single code, so its
// samples cannot show how likely x is under other codes. The proposal starts from this code and, with a small
// probability, replaces each part by a random value, so that every code can be drawn. Layers with continuous latents
// keep their samples, which were drawn given the undisturbed codes below. Returns the contribution of the discrete
// layers to log q(z) - log p(z) for every document.
std::vector<double> disturbed(Tape& tape, const UniVae& model, const Batch& batch, std::uint64_t seed,
                              std::uint32_t sample, std::vector<Tensor*>& z) {
    int parts = 0;
    for (const auto& layer : model.latents) parts += layer.latent->code_parts();
    const double change = 1.0 / (1 + parts);
    std::vector<double> sums(std::size_t(batch.documents), 0);
    for (std::size_t l = 0; l < z.size(); l++) {
        if (model.latents[l].latent->code_parts() == 0) continue;
        std::vector<double> all = numbers_of(z[l]->view());
        for (std::size_t b = 0; b < sums.size(); b++) {
            Sequence random(seed, text("latent.disturbed.", l), sample, std::uint32_t(batch.names()[b]));
            sums[b] += model.latents[l].latent->disturb(&all[b * std::size_t(z[l]->columns())], change, random);
        }
        z[l] = tape.constant("disturbed", z[l]->shape, z[l]->dtype, all.data());
    }
    return sums;
}

}  // namespace

HeldOut held_out_losses(const UniVae& model, const std::vector<const Sentence*>& sentences, std::uint64_t seed) {
    HeldOut h;
    h.layer_kl.resize(model.latents.size());
    std::vector<std::vector<double>> before(model.latents.size());
    each_batch(model, sentences, [&](Tape& tape, const Batch& batch, std::size_t) {
        const auto count = std::size_t(batch.documents);
        LatentNoise noise = model.space.noise(batch.names(), seed, 0);
        tape.begin("held out");
        std::vector<LatentSample> samples = model.encode(tape, batch, &noise);
        std::vector<Tensor*> z = points(samples);
        h.own += sum_of(sentence_losses(tape, model, batch, z, &h));
        if (!z.empty()) {
            h.mean_path += sum_of(sentence_losses(tape, model, batch, points(model.encode(tape, batch, nullptr))));
            for (std::size_t l = 0; l < z.size(); l++) z[l] = neighbours(tape, z[l], before[l]);
            h.other += sum_of(sentence_losses(tape, model, batch, z));
        }
        for (std::size_t l = 0; l < samples.size(); l++)
            h.layer_kl[l] += samples[l].kl ? sum_of(numbers_of(samples[l].kl->view()))
                                           : double(count) * model.latents[l].latent->constant_kl();
        h.sentences += std::int64_t(count);
        h.tokens += batch.labels.count;
        tape.end();
    });
    double tokens = double(h.tokens), n = double(h.sentences);
    h.kl = sum_of(h.layer_kl);
    for (double& kl : h.layer_kl) kl /= n;
    h.elbo = -(h.own + h.kl) / n;
    h.own /= tokens;
    h.mean_path /= tokens;
    h.other = n > 1 ? h.other / tokens : NAN;
    h.kl_per_token = h.kl / tokens;
    h.kl /= n;
    return h;
}

std::vector<double> importance_weighted_nll(const UniVae& model, const std::vector<const Sentence*>& sentences,
                                            int samples, std::uint64_t seed) {
    std::vector<double> nll;
    if (model.options.latent_layers == 0) samples = 1;
    each_batch(model, sentences, [&](Tape& tape, const Batch& batch, std::size_t) {
        const auto count = std::size_t(batch.documents);
        std::vector<std::vector<double>> weights(count);  // log(p(x|z) p(z) / q(z|x)) for each document x and sample z
        for (int s = 0; s < samples; s++) {
            LatentNoise noise = model.space.noise(batch.names(), seed, std::uint32_t(s));
            tape.begin("importance");
            const std::vector<LatentSample> drawn = model.encode(tape, batch, &noise);
            std::vector<Tensor*> z = points(drawn);
            std::vector<double> ratios = log_ratios(model, drawn, count);
            const std::vector<double> of_codes = disturbed(tape, model, batch, seed, std::uint32_t(s), z);
            for (std::size_t b = 0; b < count; b++) ratios[b] += of_codes[b];
            const std::vector<double> losses = sentence_losses(tape, model, batch, z);
            for (std::size_t b = 0; b < count; b++) weights[b].push_back(-losses[b] - ratios[b]);
            tape.end();
        }
        for (const std::vector<double>& w : weights) {
            double top = *std::max_element(w.begin(), w.end()), sum = 0;
            for (double x : w) sum += std::exp(x - top);
            nll.push_back(-(top + std::log(sum / samples)));
        }
    });
    return nll;
}

}  // namespace masquerade
