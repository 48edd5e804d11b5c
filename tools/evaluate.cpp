// SPDX-License-Identifier: MIT
// ./evaluate RUN: what a run knows of sentences it was not trained on.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "data/text.h"
#include "models/univae_evaluation.h"
#include "models/univae_run.h"
#include "tools/origin.h"
#include "tools/program.h"

using namespace masquerade;

namespace {

struct Arguments {
    std::string run, data;
    int limit = 1000, importance = 20, samples = 200;
    bool json = false;
};

struct Row {
    std::string key, unit, meaning;
    double value;
};

// Code points of a line: bytes that do not continue one.
std::int64_t characters(const std::string& line) {
    return std::count_if(line.begin(), line.end(),
                         [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::vector<Row> measure(const Arguments& a, const Common& common) {
    std::unique_ptr<UniVaeRun> run = UniVaeRun::load(a.run);
    const UniVae& model = run->model;
    std::vector<std::string> lines;
    std::set<Tokens> trained;
    if (a.data.empty()) {
        TrainingText t = read_again(origin_of(run->run_json, a.run + "/run.json"));
        lines = std::move(t.held_out);
        for (const Sentence& s : run->sentences(t.train))
            trained.insert(Tokens(s.ids.begin() + 1, s.ids.end() - 1));
    } else {
        lines = read_text(a.data).source;
    }
    if (int(lines.size()) > a.limit) lines.resize(std::size_t(a.limit));
    if (lines.empty()) throw BadInput("there is no held-out sentence to evaluate on; give --data FILE");
    std::vector<Sentence> sentences = run->sentences(lines);
    std::vector<const Sentence*> all;
    for (const Sentence& s : sentences) all.push_back(&s);
    const bool latent = model.options.latent_layers > 0;
    const bool plain = latent && model.options.latent.kind == LatentKind::none;

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
        UniVaeDecoder decoder(model, run->special());
        Closeness c = compare(references, decoder.write(requests, {}, common.seed));
        row("exact", 100 * c.exact, "%", "greedy reconstructions equal to their sentence");
        row("token_accuracy", 100 * c.token_accuracy, "%", "tokens met at their place");
        row("bleu4", c.bleu4, "", "corpus BLEU-4 over pieces");
    }
    std::vector<DecodeRequest> requests;
    for (int i = 0; i < a.samples; i++)
        requests.push_back({model.space.prior(common.seed, std::uint32_t(i), 0), std::uint32_t(i), 0,
                            model.start_position(12)});
    SamplingOptions sampling;
    if (!latent) sampling.temperature = 1;
    UniVaeDecoder decoder(model, run->special());
    std::vector<Tokens> samples = decoder.write(requests, sampling, common.seed);
    row("samples_distinct2", 100 * distinct(samples, 2), "%", "different pairs of pieces in samples");
    row("samples_unique",
        100.0 * double(std::set<Tokens>(samples.begin(), samples.end()).size()) / double(a.samples), "%",
        "samples that differ");
    if (!trained.empty()) {
        double copies = 0;
        for (const Tokens& t : samples) copies += double(trained.count(t));
        row("samples_copied", 100 * copies / double(a.samples), "%", "samples equal to a training sentence");
    }
    return rows;
}

void evaluate(const Arguments& a, const Common& common) {
    std::vector<Row> rows = measure(a, common);
    if (a.json) {
        nlohmann::ordered_json out;
        for (const Row& r : rows) out[r.key] = {{"value", r.value}, {"unit", r.unit}};
        fmt::print("{}\n", out.dump(2));
        return;
    }
    for (const Row& r : rows) fmt::print("{:<21}{:>10.3f}  {:<15}{}\n", r.key, r.value, r.unit, r.meaning);
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    return run_program(
        argc, argv, "evaluate", "Measures a run on held-out sentences.",
        [&](CLI::App& app) {
            app.add_option("run", a.run, "run folder, or one of its steps")->required()->option_text("RUN");
            app.add_option("--data", a.data, "sentences, one a line (default: those the run held out)")
                ->option_text("FILE");
            app.add_option("--limit", a.limit, "at most so many sentences (default: 1000)")
                ->check(CLI::Range(1, 100000000))
                ->option_text("N");
            app.add_option("--importance", a.importance, "importance samples a sentence (default: 20)")
                ->check(CLI::Range(1, 100000))
                ->option_text("S");
            app.add_option("--samples", a.samples, "samples from the prior (default: 200)")
                ->check(CLI::Range(1, 1000000))
                ->option_text("N");
            app.add_flag("--json", a.json, "the same as JSON");
        },
        [&](const Common& common) { evaluate(a, common); });
}
