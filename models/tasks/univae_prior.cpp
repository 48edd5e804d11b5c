// SPDX-License-Identifier: MIT
#include "models/tasks/univae_prior.h"

#include <optional>

#include "engine/tensor/numbers.h"

namespace masquerade {

namespace {

// Returns the latents of each sentence: draws from the posterior or, if there is no seed, its means.
Vectors latents_of(const UniVae& model, const Sentences& sentences, std::optional<std::uint64_t> seed) {
    Vectors own;  // the latents of the sentences of this process
    const auto use = [&](Tape& tape, const Batch& batch, std::size_t) {
        const std::size_t first = own.size();
        own.resize(first + batch.documents);
        const LatentNoise noise = seed ? model.space.noise(batch.names(), *seed, 0) : LatentNoise();
        tape.begin("encode");
        for (const LatentSample& s : model.encode(tape, batch, seed ? &noise : nullptr)) {
            const Numbers z = numbers_of(s.z->view());  // (B,Z): Z numbers per sentence
            for (std::size_t i = 0; i < z.size(); i++) own[first + i / s.z->columns()].push_back(z[i]);
        }
        tape.end();
    };
    each_own_batch(
        model.backbone, sentences, sentences_at_a_time, [&](const auto& some) { return encoder_batch(model, some); },
        use);
    return gather_lists(own);
}

}  // namespace

Vectors mean_latents(const UniVae& model, const Sentences& sentences) { return latents_of(model, sentences, {}); }

Vectors drawn_latents(const UniVae& model, const Sentences& sentences, std::uint64_t seed) {
    return latents_of(model, sentences, seed);
}

void redraw(const UniVae& model, const Sentences& sources, const Vectors& normals, int from, int to, Vectors& latents) {
    const LatentSpace& space = model.space;
    const auto batch_of = [&](const auto& some) { return sources_batch(model, some); };
    each_batch(model.backbone, sources, 64, batch_of, [&](Tape& tape, const Batch& batch, std::size_t first) {
        LatentNoise noise;
        for (int l = 0; l < space.layers(); l++) {
            std::vector<float>& e = noise.e.emplace_back();
            for (int b = 0; b < batch.documents; b++)
                e.insert(e.end(), normals[first + b].begin() + space.begin(l),
                         normals[first + b].begin() + space.begin(l + 1));
        }
        tape.begin("draw");
        model.draw(tape, batch, &noise, [&](int l, const LatentSample& s) {
            Numbers z = numbers_of(s.z->view());  // (B,Z): Z numbers for each of B sentences
            for (std::size_t i = 0; i < z.size(); i++) {
                const int at = space.begin(l) + int(i % s.z->columns());
                double& own = latents[first + i / s.z->columns()][at];
                z[i] = own = at >= from && at < to ? z[i] : own;
            }
            return tape.constant("z", s.z->shape, s.z->dtype, z.data());
        });
        tape.end();
    });
}

std::vector<Sentence> sentences_for_prior(const UniVae& model, const SentenceList& sentences, int most,
                                          std::uint64_t seed) {
    if (model.options.latent_layers == 0)
        throw BadUsage("a language model without latents (latent_layers=0) has no prior to fit");
    if (sentences.size() == 0) throw BadInput("there is no training sentence to fit a prior to");
    std::vector<Sentence> chosen;
    for (std::size_t i : drawn(sentences.size(), std::max(1, most), Sequence(seed, "prior.sentences")))
        chosen.push_back(sentences.at(i));
    return chosen;
}

MixturePrior fit_prior(const UniVae& model, const SentenceList& sentences, int most, std::uint64_t seed) {
    const std::vector<Sentence> chosen = sentences_for_prior(model, sentences, most, seed);
    std::vector<float> codes;  // one latent vector after another, model.space.numbers() values each
    for (const Numbers& code : mean_latents(model, pointers_to(chosen)))
        codes.insert(codes.end(), code.begin(), code.end());
    const Shape shape = {std::int64_t(chosen.size()), std::int64_t(codes.size() / chosen.size())};
    std::vector<int> lengths;
    for (const Sentence& s : chosen) lengths.push_back(s.ids.size());
    return MixturePrior::fit(model.space, view_of(codes, shape, "prior.codes"), seed, lengths);
}

}  // namespace masquerade
