// SPDX-License-Identifier: MIT
#include "models/tasks/univae_evaluation.h"

#include <algorithm>
#include <cmath>

#include "engine/tensor/numbers.h"
#include "models/density/rows.h"

namespace masquerade {
namespace {

constexpr std::size_t at_a_time = 64;

std::vector<Tensor*> points(const std::vector<LatentSample>& samples) {
    std::vector<Tensor*> z;
    for (const LatentSample& s : samples) z.push_back(s.z);
    return z;
}

// -log p(x|z) of every document of the batch.
std::vector<double> sentence_losses(Tape& tape, const UniVae& model, const UniVaeBatch& batch,
                                    const std::vector<Tensor*>& z) {
    Tensor* h = model.backbone.head(tape, model.decode(tape, batch, z));
    const OnHost losses(model.backbone.token_losses(tape, h, batch.asked.tokens)->view());
    std::vector<double> sums(std::size_t(batch.documents));
    for (int b = 0; b < batch.documents; b++)
        for (int row = batch.asked.begin[std::size_t(b)]; row < batch.asked.begin[std::size_t(b) + 1];
             row++)
            sums[std::size_t(b)] += losses[row];
    return sums;
}

double sum_of(const std::vector<double>& numbers) {
    double s = 0;
    for (double x : numbers) s += x;
    return s;
}

// The rows of z moved up by one, the first one last: every document gets its neighbour's.
Tensor* neighbours(Tape& tape, const Tensor* z) {
    const OnHost numbers(z->view());
    std::vector<double> moved;
    for (std::int64_t i = 0; i < z->shape.count(); i++)
        moved.push_back(numbers[(i + z->columns()) % z->shape.count()]);
    return tape.constant("other_z", z->shape, z->dtype, moved.data());
}

// What one latent layer made of a batch, for the host to read.
struct Latents {
    OnHost z, y;
};
std::vector<Latents> on_host(const std::vector<LatentSample>& samples) {
    std::vector<Latents> layers;
    for (const LatentSample& s : samples) layers.push_back({OnHost(s.z->view()), OnHost(s.y->view())});
    return layers;
}

std::vector<double> row_of(const OnHost& numbers, std::int64_t row) {
    const std::int64_t columns = numbers.view().columns();
    std::vector<double> all;
    for (std::int64_t i = 0; i < columns; i++) all.push_back(numbers[row * columns + i]);
    return all;
}

// sum_l log q(z_l | z_<l, x) - log p(z_l) of document b.
double log_ratio(const UniVae& model, const std::vector<Latents>& layers, std::int64_t b) {
    double sum = 0;
    for (const Latents& l : layers)
        sum += model.space.log_ratio(row_of(l.z, b).data(), row_of(l.y, b).data());
    return sum;
}

// log p(z) - log p_0(z) of the first `count` documents.
std::vector<double> log_gains(const LatentPrior& prior, const std::vector<Latents>& layers,
                              std::int64_t count) {
    std::vector<float> z;
    for (std::int64_t b = 0; b < count; b++)
        for (const Latents& l : layers)
            for (double x : row_of(l.z, b)) z.push_back(float(x));
    return prior.log_gains(view_of(z, {count, std::int64_t(z.size()) / count}, "latents"));
}

}  // namespace

HeldOut held_out_losses(const UniVae& model, const std::vector<const Sentence*>& sentences,
                        std::uint64_t seed) {
    HeldOut h;
    Arena arena(model.backbone.device(), Blocks::kept);
    Tape tape(arena, model.backbone.storage());
    for (std::size_t first = 0; first < sentences.size(); first += at_a_time) {
        std::size_t count = std::min(at_a_time, sentences.size() - first);
        UniVaeBatch batch = model.batch({&sentences[first], &sentences[first] + count});
        LatentNoise noise = model.space.noise(batch.names(), seed, 0);
        tape.begin("held out");
        std::vector<LatentSample> samples = model.encode(tape, batch, &noise);
        std::vector<Tensor*> z = points(samples);
        h.own += sum_of(sentence_losses(tape, model, batch, z));
        if (!z.empty()) {
            h.mean_path +=
                sum_of(sentence_losses(tape, model, batch, points(model.encode(tape, batch, nullptr))));
            for (Tensor*& each : z) each = neighbours(tape, each);
            h.other += sum_of(sentence_losses(tape, model, batch, z));
        }
        for (const LatentSample& s : samples) {
            if (!s.kl) continue;
            const OnHost kl(s.kl->view());
            for (std::size_t b = 0; b < count; b++) h.kl += kl[std::int64_t(b)];
        }
        h.sentences += std::int64_t(count);
        h.tokens += batch.asked.count;
        tape.end();
    }
    double tokens = double(h.tokens), n = double(h.sentences);
    h.kl += n * model.space.constant_kl();
    h.elbo = -(h.own + h.kl) / n;
    h.own /= tokens;
    h.mean_path /= tokens;
    h.other /= tokens;
    h.kl_per_token = h.kl / tokens;
    h.kl /= n;
    return h;
}

std::vector<double> importance_weighted_nll(const UniVae& model,
                                            const std::vector<const Sentence*>& sentences, int samples,
                                            std::uint64_t seed, const LatentPrior* prior, double* kl) {
    double divergence = 0;
    std::vector<double> nll;
    Arena arena(model.backbone.device(), Blocks::kept);
    Tape tape(arena, model.backbone.storage());
    if (model.options.latent_layers == 0) samples = 1;
    for (std::size_t first = 0; first < sentences.size(); first += at_a_time) {
        std::size_t count = std::min(at_a_time, sentences.size() - first);
        UniVaeBatch batch = model.batch({&sentences[first], &sentences[first] + count});
        std::vector<std::vector<double>> weights(count);  // log of p(x|z) p(z) / q(z|x)
        for (int s = 0; s < samples; s++) {
            LatentNoise noise = model.space.noise(batch.names(), seed, std::uint32_t(s));
            tape.begin("importance");
            const std::vector<LatentSample> drawn = model.encode(tape, batch, &noise);
            std::vector<double> losses = sentence_losses(tape, model, batch, points(drawn));
            const std::vector<Latents> latents = on_host(drawn);
            std::vector<double> gains(count, 0.0);
            if (prior) gains = log_gains(*prior, latents, std::int64_t(count));
            for (std::size_t b = 0; b < count; b++) {
                const double ratio = log_ratio(model, latents, std::int64_t(b)) - gains[b];
                divergence += ratio / (double(sentences.size()) * samples);
                weights[b].push_back(-losses[b] - ratio);
            }
            tape.end();
        }
        for (const std::vector<double>& w : weights) {
            double top = *std::max_element(w.begin(), w.end()), sum = 0;
            for (double x : w) sum += std::exp(x - top);
            nll.push_back(-(top + std::log(sum / samples)));
        }
    }
    if (kl) *kl = divergence;
    return nll;
}

}  // namespace masquerade
