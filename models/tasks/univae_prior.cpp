// SPDX-License-Identifier: MIT
#include "models/tasks/univae_prior.h"

#include "engine/tensor/numbers.h"

namespace masquerade {

std::vector<std::vector<double>> mean_latents(const UniVae& model, const std::vector<const Sentence*>& sentences) {
    std::vector<std::vector<double>> all(sentences.size());
    each_batch(model, sentences, [&](Tape& tape, const Batch& batch, std::size_t first) {
        tape.begin("encode");
        for (const LatentSample& s : model.encode(tape, batch, nullptr)) {
            const std::vector<double> z = numbers_of(s.z->view());  // (B,Z): Z numbers per sentence
            for (std::size_t i = 0, Z = std::size_t(s.z->columns()); i < z.size(); i++)
                all[first + i / Z].push_back(z[i]);
        }
        tape.end();
    });
    return all;
}

LatentPrior fit_prior(const UniVae& model, const std::vector<Sentence>& sentences, int most, std::uint64_t seed) {
    if (model.options.latent_layers == 0)
        throw BadUsage("a language model without latents (latent_layers=0) has no prior to fit");
    if (sentences.empty()) throw BadInput("there is no training sentence to fit a prior to");
    std::vector<const Sentence*> chosen;
    for (std::size_t i : drawn(sentences.size(), std::size_t(std::max(1, most)), Sequence(seed, "prior.sentences")))
        chosen.push_back(&sentences[i]);
    std::vector<float> codes;  // one latent vector after another, model.space.numbers() values each
    for (const std::vector<double>& code : mean_latents(model, chosen))
        codes.insert(codes.end(), code.begin(), code.end());
    const Shape shape = {std::int64_t(chosen.size()), std::int64_t(codes.size() / chosen.size())};
    std::vector<int> lengths;
    for (const Sentence* s : chosen) lengths.push_back(int(s->ids.size()));
    return LatentPrior::fit(model.space, view_of(codes, shape, "prior.codes"), seed, lengths);
}

}  // namespace masquerade
