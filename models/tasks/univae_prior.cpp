// SPDX-License-Identifier: MIT
#include "models/tasks/univae_prior.h"

#include "engine/tensor/numbers.h"

namespace masquerade {

std::vector<Numbers> mean_latents(const UniVae& model, const Sentences& sentences) {
    std::vector<Numbers> all(sentences.size());
    each_batch(model, sentences, [&](Tape& tape, const Batch& batch, std::size_t first) {
        tape.begin("encode");
        for (const LatentSample& s : model.encode(tape, batch, nullptr)) {
            const Numbers z = numbers_of(s.z->view());  // (B,Z): Z numbers per sentence
            for (std::size_t i = 0; i < z.size(); i++) all[first + i / s.z->columns()].push_back(z[i]);
        }
        tape.end();
    });
    return all;
}

LatentPrior fit_prior(const UniVae& model, const std::vector<Sentence>& sentences, int most, std::uint64_t seed) {
    if (model.options.latent_layers == 0)
        throw BadUsage("a language model without latents (latent_layers=0) has no prior to fit");
    if (sentences.empty()) throw BadInput("there is no training sentence to fit a prior to");
    Sentences chosen;
    for (std::size_t i : drawn(sentences.size(), std::max(1, most), Sequence(seed, "prior.sentences")))
        chosen.push_back(&sentences[i]);
    std::vector<float> codes;  // one latent vector after another, model.space.numbers() values each
    for (const Numbers& code : mean_latents(model, chosen)) codes.insert(codes.end(), code.begin(), code.end());
    const Shape shape = {std::int64_t(chosen.size()), std::int64_t(codes.size() / chosen.size())};
    std::vector<int> lengths;
    for (const Sentence* s : chosen) lengths.push_back(s->ids.size());
    return LatentPrior::fit(model.space, view_of(codes, shape, "prior.codes"), seed, lengths);
}

}  // namespace masquerade
