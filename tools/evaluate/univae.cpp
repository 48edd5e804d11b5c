// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "data/text.h"
#include "engine/base/log.h"
#include "models/scoring/metrics.h"
#include "models/scoring/sample_quality.h"
#include "models/tasks/univae_evaluation.h"
#include "models/runs/univae_run.h"
#include "tools/evaluate/evaluate.h"
#include "tools/origin.h"

namespace masquerade {
namespace {

// Code points of a line: bytes that do not continue one.
std::int64_t characters(const std::string& line) {
    return std::count_if(line.begin(), line.end(),
                         [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

// The run's own text. Where other sentences are given to evaluate on, a run whose text is gone is still
// measured.
TrainingText text_of(const UniVaeRun& run, const UniVaeMeasuring& a) {
    TextOrigin origin = origin_of(run.run_json, a.choice.run + "/run.json");
    if (a.choice.data.empty()) return read_again(origin);
    TrainingText t;
    try {
        t = read_again(origin);
    } catch (const BadInput& e) {
        log_line("note: ", e.what(), "; samples are not measured without it");
    }
    t.held_out = read_text(a.choice.data).source;
    return t;
}

// Sentences drawn from the model: greedy from latents of the prior; of a language model, which has no other
// source of variety, token by token at temperature 1.
std::vector<std::string> sampled_lines(const UniVaeRun& run, UniVaeDecoder& decoder, const UniVaeMeasuring& a,
                                       std::uint64_t seed) {
    const UniVae& model = run.model;
    std::vector<DecodeRequest> requests;
    for (int i = 0; i < a.samples; i++)
        requests.push_back(
            {run.draw(seed, std::uint32_t(i), 0), std::uint32_t(i), 0, model.start_position(12)});
    SamplingOptions sampling;
    if (model.options.latent_layers == 0) sampling.temperature = 1;
    std::vector<std::string> lines;
    for (const Tokens& t : refined(decoder, requests, sampling, seed, a.refine)) lines.push_back(run.text(t));
    return lines;
}

void measure_samples(const TrainingText& t, const std::vector<std::string>& samples, std::vector<Row>& rows) {
    SampleQuality quality(t.train);
    std::vector<std::string> held_out(
        t.held_out.begin(), t.held_out.begin() + std::ptrdiff_t(std::min(samples.size(), t.held_out.size())));
    TextQuality s = quality.measure(samples, held_out.size()), h = quality.measure(held_out, held_out.size());
    auto row = [&](const char* key, double of_samples, double of_held_out, const char* unit,
                   const char* meaning) {
        rows.push_back({key, unit, meaning, of_samples, {of_held_out}});
    };
    row("samples", double(samples.size()), double(held_out.size()), "",
        "lines; words are BERT's, lower-cased");
    row("samples_perplexity", s.perplexity.all, h.perplexity.all, "a word",
        "under a 5-gram model of the training text");
    row("samples_perplexity_known", s.perplexity.known, h.perplexity.known, "a word",
        "the same, unknown words left out");
    row("samples_unknown", 100 * s.perplexity.unknown, 100 * h.perplexity.unknown, "%",
        "words seen less than twice in training");
    row("samples_distinct1", 100 * s.distinct1, 100 * h.distinct1, "%", "different words");
    row("samples_distinct2", 100 * s.distinct2, 100 * h.distinct2, "%", "different pairs of words");
    row("samples_repeated", 100 * s.repeated, 100 * h.repeated, "%", "lines equal to an earlier one");
    row("samples_copied", 100 * s.copied, 100 * h.copied, "%", "lines equal to a training line");
    row("samples_match", 100 * s.match, 100 * h.match, "%", "of a line: its longest run of training text");
    row("samples_length", s.length, h.length, "words", "a line");
}

std::vector<Row> measured(UniVaeRun& own, const UniVaeMeasuring& a, const Common& common) {
    UniVaeRun* const run = &own;
    const UniVae& model = run->model;
    run->choose_prior(a.prior, a.latent_temperature);
    const TrainingText text = text_of(*run, a);
    std::vector<std::string> lines = text.held_out;
    if (int(lines.size()) > a.choice.limit) lines.resize(std::size_t(a.choice.limit));
    if (lines.empty()) throw BadInput("there is no held-out sentence to evaluate on; give --data FILE");
    std::vector<Sentence> sentences = run->sentences(lines);
    const std::vector<const Sentence*> all = pointers_to(sentences);
    UniVaeDecoder decoder(model, run->special());
    const bool latent = model.options.latent_layers > 0;
    const bool plain = latent && !model.latents[0].latent->has_density();

    std::vector<Row> rows;
    auto row = [&](const char* key, double value, const char* unit, const char* meaning) {
        rows.push_back({key, unit, meaning, value});
    };
    HeldOut h = held_out_losses(model, all, common.seed);
    std::int64_t letters = 0;
    for (const std::string& line : lines) letters += characters(line);
    row("sentences", double(h.sentences), "", "held-out sentences");
    row("tokens", double(h.tokens), "", "scored: pieces and [SEP]");
    row("reconstruction", h.own, "nats/token", "-log p(x|z), z of the sentence itself");
    if (latent) {
        row("reconstruction_mean", h.mean_path, "nats/token", "the same with z = mu");
        row("reconstruction_other", h.other, "nats/token", "with the z of another sentence");
    }
    if (latent && !plain) {
        row("kl", h.kl, "nats/sentence", "KL(q(z|x) || p(z)), all latent layers");
        row("elbo", h.elbo, "nats/sentence", "-(reconstruction + KL)");
    }
    if (!plain) {
        double nll = 0;
        for (double x : importance_weighted_nll(model, all, a.importance, common.seed)) nll += x;
        double n = double(h.sentences);
        std::string how =
            latent ? fmt::format("-log p(x), {} importance samples", a.importance) : "-log p(x), exact";
        rows.push_back({"nll", "nats/sentence", how, nll / n});
        row("nll_token", nll / double(h.tokens), "nats/token", "the same a scored token");
        row("nll_character", nll / (double(letters) + n), "nats/character",
            "the same a character, the line's end one");
    }
    if (latent) {
        auto latents = mean_latents(model, all);
        std::vector<DecodeRequest> requests;
        std::vector<Tokens> references;
        for (std::size_t i = 0; i < all.size(); i++) {
            requests.push_back(
                {latents[i], std::uint32_t(i), 0, model.start_position(int(all[i]->ids.size()))});
            references.emplace_back(all[i]->ids.begin() + 1, all[i]->ids.end() - 1);
        }
        Closeness c = compare(references, decoder.write(requests, {}, common.seed));
        row("exact", 100 * c.exact, "%", "greedy reconstructions equal to their sentence");
        row("token_accuracy", 100 * c.token_accuracy, "%", "tokens met at their place");
        row("bleu4", c.bleu4, "", "corpus BLEU-4 over pieces");
    }
    if (!text.train.empty()) measure_samples(text, sampled_lines(*run, decoder, a, common.seed), rows);
    return rows;
}

}  // namespace

void UniVaeMeasuring::declare(CLI::App& app) {
    CLI::Option_group* group = app.add_option_group("of univae");
    own = group;
    group->add_option("--importance", importance, "importance samples a sentence (default: 20)")
        ->check(CLI::Range(1, 100000))
        ->option_text("S");
    group->add_option("--samples", samples, "samples of the model (default: 1000)")
        ->check(CLI::Range(1, 1000000))
        ->option_text("N");
    group
        ->add_option("--prior", prior,
                     "of samples and likelihoods: fitted after training (default, where there is one), "
                     "or uniform: the one of training")
        ->check(CLI::IsMember({"fitted", "uniform"}))
        ->option_text("NAME");
    group
        ->add_option(
            "--latent-temperature", latent_temperature,
            fmt::format("of samples from the fitted prior (default: {})", LatentPrior::default_temperature))
        ->check(CLI::Range(0.0, 100.0))
        ->option_text("T");
    group->add_option("--refine", refine, "read every sample and write it again so often (default: 0)")
        ->check(CLI::Range(0, 1000))
        ->option_text("N");
}

std::vector<Row> UniVaeMeasuring::measure(UniVaeRun& run, const Common& common) const {
    return measured(run, *this, common);
}

}  // namespace masquerade
