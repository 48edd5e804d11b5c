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

// Returns the reconstruction loss of every document x with the latents z: -log p(x|z) or, if the model inserts words,
// the estimate that univae_evaluation.h describes. If `h` is not null and the model does not insert words, adds the
// loss of the i-th target token of each document to h->at_place[i], and 1 to h->reach[i].
Numbers sentence_losses(Tape& tape, const UniVae& model, const Batch& batch, const std::vector<Tensor*>& z,
                        HeldOut* h = nullptr) {
    Numbers sums(batch.documents);
    Tensor* x = model.decode(tape, batch, z);
    if (model.insertion) {
        const Numbers means = numbers_of(model.insertion->loss(tape, x, batch, batch.insertions).losses->view());
        for (int b = 0; b < batch.documents; b++) sums[b] = batch.insertions[b] * means[b];
        return sums;
    }
    Tensor* states = model.backbone.head(tape, x);
    const Numbers losses = numbers_of(model.backbone.token_losses(tape, states, batch.labels.tokens)->view());
    for (int b = 0; b < batch.documents; b++)
        for (int first = batch.labels.begin[b], row = first; row < batch.labels.begin[b + 1]; row++) {
            const std::size_t place = row - first;
            sums[b] += losses[row];
            if (!h) continue;
            if (place == h->reach.size()) h->at_place.push_back(0), h->reach.push_back(0);
            h->at_place[place] += losses[row];
            h->reach[place]++;
        }
    return sums;
}

double sum_of(const Numbers& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }

// Returns z with its rows shifted by one, so that every document gets the z of the previous document. The first
// document of a batch gets `before`, the last row of z in the previous batch. In the first batch, `before` is empty,
// and the first document gets the last row of z. Sets `before` to the last row of z.
Tensor* neighbours(Tape& tape, const Tensor* z, Numbers& before) {
    Numbers moved = numbers_of(z->view());
    std::rotate(moved.begin(), moved.end() - z->columns(), moved.end());
    Numbers last(moved.begin(), moved.begin() + z->columns());
    if (!before.empty()) std::copy(before.begin(), before.end(), moved.begin());
    before = std::move(last);
    return tape.constant("other_z", z->shape, z->dtype, moved.data());
}

// Returns, for every document, log q(z | x) - log p(z) of the continuous latent layers: the sum over these layers l of
// log q(z_l | z_<l, x) - log p(z_l | z_<l), where z_<l are the samples of the layers below.
Numbers log_ratios(const UniVae& model, const std::vector<LatentSample>& samples, int documents) {
    Numbers sums(documents);
    for (std::size_t l = 0; l < samples.size(); l++) {
        if (model.latents[l].latent->code_parts() > 0) continue;
        const LatentSample& s = samples[l];
        const Numbers z = numbers_of(s.z->view()), y = numbers_of(s.y->view()),
                      prior = s.prior ? numbers_of(s.prior->view()) : Numbers();
        for (int b = 0; b < documents; b++)
            sums[b] += model.latents[l].latent->log_ratio(&z[b * s.z->columns()], &y[b * s.y->columns()],
                                                          s.prior ? &prior[b * s.prior->columns()] : nullptr);
    }
    return sums;
}

// For discrete latents: replaces the latents z by draws from a proposal q. The posterior of a discrete latent is a
// single code, so its samples cannot show how likely x is under other codes. The proposal starts from this code and
// replaces each part of it, with a small probability, by a random value, so that every code can be drawn. Layers with
// continuous latents keep their samples, which were drawn given the original codes of the layers below. Returns, for
// every document, the sum of log q(z) - log p(z) over the discrete layers.
Numbers disturbed(Tape& tape, const UniVae& model, const Batch& batch, std::uint64_t seed, std::uint32_t sample,
                  std::vector<Tensor*>& z) {
    int parts = 0;
    for (const auto& layer : model.latents) parts += layer.latent->code_parts();
    const double change = 1.0 / (1 + parts);
    Numbers sums(batch.documents, 0);
    for (std::size_t l = 0; l < z.size(); l++) {
        if (model.latents[l].latent->code_parts() == 0) continue;
        Numbers all = numbers_of(z[l]->view());
        for (int b = 0; b < batch.documents; b++) {
            Sequence random(seed, text("latent.disturbed.", l), sample, batch.names()[b]);
            sums[b] += model.latents[l].latent->disturb(&all[b * z[l]->columns()], change, random);
        }
        z[l] = tape.constant("disturbed", z[l]->shape, z[l]->dtype, all.data());
    }
    return sums;
}

}  // namespace

HeldOut held_out_losses(const UniVae& model, const Sentences& sentences, std::uint64_t seed,
                        const InsertionRule& rule) {
    ObjectiveOptions options = halves_options(model);
    options.seed = seed;
    options.insertion = rule;
    HeldOut h;
    h.layer_kl.resize(model.latents.size());
    std::vector<Numbers> before(model.latents.size());
    each_batch(model, sentences, options, [&](Tape& tape, const Batch& batch, std::size_t) {
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
                                           : batch.documents * model.latents[l].latent->constant_kl();
        h.sentences += batch.documents;
        h.tokens += batch.predictions();
        tape.end();
    });
    const double tokens = h.tokens, n = h.sentences;
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

Numbers importance_weighted_nll(const UniVae& model, const Sentences& sentences, int samples, std::uint64_t seed) {
    Numbers nll;
    if (model.options.latent_layers == 0) samples = 1;
    each_batch(model, sentences, [&](Tape& tape, const Batch& batch, std::size_t) {
        const int count = batch.documents;
        std::vector<Numbers> weights(count);  // log(p(x|z) p(z) / q(z|x)) for each document x and sample z
        for (int s = 0; s < samples; s++) {
            LatentNoise noise = model.space.noise(batch.names(), seed, s);
            tape.begin("importance");
            const std::vector<LatentSample> drawn = model.encode(tape, batch, &noise);
            std::vector<Tensor*> z = points(drawn);
            const Numbers ratios = log_ratios(model, drawn, count);
            const Numbers of_codes = disturbed(tape, model, batch, seed, s, z),
                          losses = sentence_losses(tape, model, batch, z);
            for (int b = 0; b < count; b++) weights[b].push_back(-losses[b] - (ratios[b] + of_codes[b]));
            tape.end();
        }
        for (const Numbers& w : weights) {
            double top = *std::max_element(w.begin(), w.end()), sum = 0;
            for (double x : w) sum += std::exp(x - top);
            nll.push_back(-(top + std::log(sum / samples)));
        }
    });
    return nll;
}

}  // namespace masquerade
