// SPDX-License-Identifier: MIT
#include "models/tasks/univae_evaluation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "engine/base/processes.h"
#include "engine/tensor/numbers.h"
#include "models/tasks/univae_prior.h"

namespace masquerade {
namespace {

double sum_of(const Numbers& numbers, double before = 0) {
    return std::accumulate(numbers.begin(), numbers.end(), before);
}

std::vector<Tensor*> points(const LatentSamples& samples) {
    std::vector<Tensor*> z;
    for (const LatentSample& s : samples) z.push_back(s.z);
    return z;
}

// Returns the reconstruction loss of every document x with the latents z: -log p(x|z) or, if the decoder half is not
// causal, the estimate that univae_evaluation.h describes. If `of_tokens` is not null and the decoder half is causal,
// adds to it the losses of the target tokens of each document.
Numbers sentence_losses(Tape& tape, const UniVae& model, const Batch& batch, const std::vector<Tensor*>& z,
                        Vectors* of_tokens = nullptr) {
    Numbers sums(batch.documents);
    Tensor* x = model.decode(tape, batch, z);
    if (model.insertion) {
        const Numbers means = numbers_of(model.insertion->loss(tape, x, batch, batch.insertions).losses->view());
        for (int b = 0; b < batch.documents; b++) sums[b] = batch.insertions[b] * means[b];
        return sums;
    }
    Tensor* states = model.backbone.head(tape, x);
    const Numbers losses = numbers_of(model.backbone.token_losses(tape, states, batch.labels.tokens)->view());
    for (int b = 0; b < batch.documents; b++) {
        Numbers own(losses.begin() + batch.labels.begin[b], losses.begin() + batch.labels.begin[b + 1]);
        for (std::size_t i = 0; i < own.size(); i++) own[i] *= batch.labels.weights[batch.labels.begin[b] + i];
        sums[b] = sum_of(own);
        if (of_tokens && !model.unmasks()) of_tokens->push_back(own);
    }
    return sums;
}

// Returns z with its rows shifted by one, so that every document gets the z of the previous document. The first
// document gets `before`, the z of the last document of the previous batch. Sets `before` to the last row of z.
Numbers neighbours(const Tensor* z, Numbers& before) {
    Numbers moved = numbers_of(z->view());
    std::rotate(moved.begin(), moved.end() - z->columns(), moved.end());
    Numbers last(moved.begin(), moved.begin() + z->columns());
    std::copy(before.begin(), before.end(), moved.begin());
    before = std::move(last);
    return moved;
}

// Returns, for every document, log q(z | x) - log p(z) of the continuous latent layers: the sum over these layers l of
// log q(z_l | z_<l, x) - log p(z_l | z_<l), where z_<l are the samples of the layers below.
Numbers log_ratios(const UniVae& model, const LatentSamples& samples, int documents) {
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

HeldOut held_out_losses(const UniVae& model, const Sentences& sentences, std::uint64_t seed) {
    ObjectiveOptions options = halves_options(model);
    options.seed = seed;
    return held_out_losses(model, sentences, options);
}

HeldOut held_out_losses(const UniVae& model, const Sentences& sentences, ObjectiveOptions options) {
    const auto encode = [&](Tape& tape, const Batch& batch) {
        LatentNoise noise = model.space.noise(batch.names(), options.seed, 0);
        tape.begin("held out");
        return model.encode(tape, batch, &noise);
    };
    // For each latent layer, the z of the sentence before the batch. The first sentence of all is measured with the z
    // of the last sentence of its group.
    Vectors before;
    // of_group: for each group of sentences, the numbers of sentences and of target tokens; the sums of the losses with
    // the sample, with the mean and with the z of another sentence; the KL of each layer.
    std::map<std::size_t, Numbers> of_group;
    Vectors of_groups, of_tokens;
    const auto measure = [&](Tape& tape, const Batch& batch, std::size_t first) {
        if (before.empty() && !model.latents.empty()) {
            const std::size_t other = (first > 0 ? first : std::min(sentences.size(), sentences_at_a_time)) - 1;
            for (const LatentSample& s : encode(tape, halves_batch(model, {sentences[other]}, 0, options, 1)))
                before.push_back(numbers_of(s.z->view()));
            tape.end();
        }
        Numbers& sums = of_group[first / sentences_at_a_time];
        sums.resize(5 + model.latents.size());
        const bool counts = options.canvas == 0;  // the numbers and the KL are the same for every canvas
        // Three steps of the tape, because a step keeps the memory of all its tensors.
        const LatentSamples samples = encode(tape, batch);
        if (counts) sums[0] += batch.documents, sums[1] += batch.predictions();
        sums[2] = sum_of(sentence_losses(tape, model, batch, points(samples), &of_tokens), sums[2]);
        Vectors others;  // outlive the step of the tape
        for (std::size_t l = 0; l < samples.size(); l++) {
            others.push_back(neighbours(samples[l].z, before[l]));
            if (!counts) continue;
            double& kl = sums[5 + l];
            kl = samples[l].kl ? sum_of(numbers_of(samples[l].kl->view()), kl)
                               : kl + batch.documents * model.latents[l].latent->constant_kl();
        }
        tape.end();
        if (others.empty()) return;
        tape.begin("posterior mean");
        sums[3] = sum_of(sentence_losses(tape, model, batch, points(model.encode(tape, batch, nullptr))), sums[3]);
        tape.end();
        tape.begin("z of another sentence");
        std::vector<Tensor*> z;
        for (std::size_t l = 0; l < others.size(); l++)
            z.push_back(tape.constant("other_z", {batch.documents, model.latents[l].latent->options.size},
                                      arithmetic_of(tape.dtype), others[l].data()));
        sums[4] = sum_of(sentence_losses(tape, model, batch, z), sums[4]);
        tape.end();
    };
    for (options.canvas = 0; options.canvas < options.canvases; options.canvas++) {
        before.clear();
        each_own_batch(model, sentences, options, measure);
    }
    for (auto& [group, sums] : of_group) of_groups.push_back(std::move(sums));
    HeldOut h;
    h.layer_kl.resize(model.latents.size());
    for (const Numbers& sums : gather_lists(of_groups)) {
        h.sentences += std::int64_t(sums[0]);
        h.tokens += std::int64_t(sums[1]);
        h.own += sums[2], h.mean_path += sums[3], h.other += sums[4];
        for (std::size_t l = 0; l < h.layer_kl.size(); l++) h.layer_kl[l] += sums[5 + l];
    }
    for (const Numbers& losses : gather_lists(of_tokens)) {
        h.at_place.resize(std::max(h.at_place.size(), losses.size()));
        h.reach.resize(h.at_place.size());
        for (std::size_t i = 0; i < losses.size(); i++) h.at_place[i] += losses[i], h.reach[i]++;
    }
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
    each_own_batch(model, sentences, halves_options(model), [&](Tape& tape, const Batch& batch, std::size_t) {
        const int count = batch.documents;
        Vectors weights(count);  // log(p(x|z) p(z) / q(z|x)) for each document x and sample z
        for (int s = 0; s < samples; s++) {
            LatentNoise noise = model.space.noise(batch.names(), seed, s);
            tape.begin("importance");
            const LatentSamples drawn = model.encode(tape, batch, &noise);
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
    return gather_numbers(nll);
}

}  // namespace masquerade
