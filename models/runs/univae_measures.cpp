// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "data/text.h"
#include "engine/base/log.h"
#include "input/utf8.h"
#include "models/scoring/metrics.h"
#include "models/tasks/univae_evaluation.h"
#include "models/scoring/latent_use.h"
#include "models/runs/sample_measures.h"
#include "models/runs/univae_run.h"
#include "models/runs/origin.h"

namespace masquerade {
namespace {

// Returns the training text and held-out text of the run. If choice.data is given, it replaces the held-out text. The
// run's own files may then be missing; if they are, the training text is empty, and samples are not measured.
TrainingText text_of(const UniVaeRun& run, const Measuring& choice) {
    const TextOrigin origin = origin_of(run.run_json, choice.run + "/run.json");
    if (choice.data.empty()) return read_again(origin);
    TrainingText t = read_if_there(origin, "samples are not measured without it");
    Text given = read_text(choice.data);
    t.held_out = std::move(given.source);
    if (run.settings.pairs) t.held_out_targets = std::move(given.target);
    return t;
}

// Returns samples of the model: draws latents from the prior and decodes them by greedy search. A language model has no
// latents, so its tokens are sampled at temperature 1. A conditional model generates targets for the sources in
// `sentences`, one source after another.
Strings sampled_lines(const UniVaeRun& run, UniVaeDecoder& decoder, const Measuring& a,
                      const StoredSentences& sentences, std::uint64_t seed) {
    const int count = a.samples > 0 ? a.samples : 1000;
    DecodeRequests requests;
    if (run.model.options.conditional) {
        StoredSentences sources;
        for (std::size_t i = 0; int(i) < count; i++) sources.push_back(sentences[i % sentences.size()]);
        requests = run.target_requests(sources, 1, seed, 0);
    }
    for (std::uint32_t i = requests.size(); int(i) < count; i++) requests.push_back(run.sample_request(seed, i));
    SearchOptions options = a.search;
    options.samples = run.model.options.latent_layers == 0 ? 1 : 0;
    Strings lines;
    for (const Tokens& t : decoder.write(requests, options, seed, a.sampling.refine)) lines.push_back(run.decode(t));
    return lines;
}

// For conditional models: samples several targets of each source. Measures how close they are to the reference of the
// source, and how different they are from each other.
void measure_targets(const UniVaeRun& run, UniVaeDecoder& decoder, const StoredSentences& sentences,
                     const std::vector<Tokens>& references, const Measuring& how, MeasureRows& rows) {
    constexpr int each = 5;
    const std::vector<Tokens> written =
        decoder.write(run.target_requests(sentences, each, how.seed, 0), how.search, how.seed, how.sampling.refine);
    std::vector<Tokens> repeated, best, pair_a, pair_b;
    double different = 0, met = 0;
    for (std::size_t i = 0; i < references.size(); i++) {
        const auto first = written.begin() + i * each, last = first + each;
        const auto closeness = [&](const Tokens& t) { return masquerade::bleu({references[i]}, {t}, true).score; };
        repeated.insert(repeated.end(), each, references[i]);
        best.push_back(*std::max_element(first, last, [&](const Tokens& a, const Tokens& b) {
            return closeness(a) < closeness(b);
        }));
        different += std::set<Tokens>(first, last).size();
        met += std::find(first, last, references[i]) != last;
        for (auto a = first; a != last; a++)
            for (auto b = first; b != last; b++)
                if (a != b) pair_a.push_back(*a), pair_b.push_back(*b);
    }
    const double n = references.size();
    const auto bleu4 = [](const std::vector<Tokens>& of, const std::vector<Tokens>& by) {
        return compare(of, by).bleu4;
    };
    const std::string which = fmt::format("{} targets of each source, z from the prior", each);
    rows.insert(rows.end(),
                {{"targets_bleu4", bleu4(repeated, written), "", which + ": corpus BLEU-4 with the reference"},
                 {"targets_best_bleu4", bleu4(references, best), "", "the same of the closest of them"},
                 {"targets_exact", 100 * met / n, "%", "sources of which one is equal to the reference"},
                 {"targets_self_bleu4", bleu4(pair_a, pair_b), "", "corpus BLEU-4 of one with another"},
                 {"targets_different", different / n, "", text("different ones, of ", each)}});
}

// Measures what the latents of single layers determine (swap_latents in latent_use.h): in sentence A, the latents of
// some layers are replaced by the latents of the next sentence, B. The content of a sentence consists of its tokens
// that are not frequent; its form is the rest, with placeholders (content_overlap and form_overlap in metrics.h).
void measure_swaps(const StoredSentences& train, const UniVaeRun& run, UniVaeDecoder& decoder,
                   const Sentences& sentences, std::uint64_t seed, const SearchOptions& search, MeasureRows& rows) {
    if (train.empty()) throw BadInput("--swap needs the training text, not packed, to count which words are frequent");
    if (sentences.size() < 2) throw BadInput("--swap needs two sentences, found one");
    constexpr int frequent = 120;
    const Swaps all = swap_latents(run.model, decoder, sentences, most_frequent(train, frequent), seed, search);
    const auto add = [&](const std::string& key, const Interval& x, const std::string& meaning) {
        rows.push_back({key, 100 * x.mean, "%", meaning, {}, {100 * x.low, 100 * x.high}});
    };
    add("swap.content", all.content, "F1 of content of B's reconstruction and A's");
    add("swap.form", all.form, "F1 of their forms");
    for (const Swap& s : all.layers) {
        const std::string key =
            s.to == s.from + 1 ? fmt::format("swap.{}", s.from) : fmt::format("swap.{}-{}", s.from, s.to - 1);
        add(key + ".content_a", s.content_a, "A with latents of B: content of A");
        add(key + ".content_b", s.content_b, "... of B");
        add(key + ".form_a", s.form_a, "form of A");
        add(key + ".form_b", s.form_b, "... of B");
    }
}

// Returns, for each line or pair of lines, whether the run reads it completely: neither truncated nor with [UNK]. Adds
// rows with the share of truncated lines and the share of lines with [UNK].
std::vector<bool> measure_whole(const UniVaeRun& run, const Strings& sources, const Strings& targets,
                                MeasureRows& rows) {
    const int longest = run.model.options.max_length;
    std::vector<Lost> lost = lost_in(run.tokenizer, sources, longest);
    const std::vector<Lost> of_targets = lost_in(run.tokenizer, targets, longest);
    for (std::size_t i = 0; i < of_targets.size(); i++)
        lost[i].end |= of_targets[i].end, lost[i].words |= of_targets[i].words;
    double cut = 0, unknown = 0;
    std::vector<bool> whole;
    for (const Lost& l : lost) cut += l.end, unknown += l.words, whole.push_back(l.nothing());
    rows.push_back({"cut", 100 * cut / lost.size(), "%",
                    fmt::format("lines of more than {} tokens, of which the rest was cut off", longest)});
    rows.push_back({"unknown", 100 * unknown / lost.size(), "%", "lines with [UNK]"});
    return whole;
}

}  // namespace

Measures UniVaeRun::measures(const Measuring& how) {
    expect_way_of_writing(how.search);
    if (model.insertion) canvas_options(how.search, special().finalization, model.options.max_length - 2);
    // Chooses the prior from which the latents of samples are drawn.
    choose_prior(how.sampling.prior, how.sampling.latent_temperature);
    if (model.options.latent_layers == 0 && (how.swap || how.sampling.refine > 0))
        throw BadUsage(how.swap ? "--swap" : "--refine", " needs latents; ", how.run,
                       " is a language model without latents (latent_layers=0)");
    const std::unique_ptr<const Judge> judge = judge_of(how);
    const TrainingText data = text_of(*this, how);
    Strings sources = data.held_out, targets = data.held_out_targets;
    if (int(sources.size()) > how.limit) sources.resize(how.limit);
    if (sources.empty()) throw BadInput("there is no held-out sentence to evaluate on; give --data FILE");
    if (settings.pairs && targets.empty())
        throw BadInput(how.run, " was trained on pairs; expected source<TAB>target on every line");
    if (!targets.empty()) targets.resize(sources.size());
    const Strings& lines = reference_lines(sources, targets);
    const StoredSentences sentences = this->sentences(sources, targets);
    const Sentences all = pointers_to(sentences);
    UniVaeDecoder decoder(model, special(), settings.train.graph);
    const bool latent = model.options.latent_layers > 0, density = model.space.has_density();
    // With free_length=true, the decoder half starts at the position where the sentence or the source ends, so that its
    // probabilities are conditional on this length. A conditional model reads the whole source anyway.
    const std::string given = !model.options.free_length || model.options.conditional ? ""
                              : settings.pairs                                        ? ", given the source's length"
                                                                                      : ", given the length";

    // In masked diffusion: from how many canvases of each sentence the bound is estimated.
    constexpr int canvases = 16;
    ObjectiveOptions options = measured_options(how.seed);
    if (model.unmasks()) options.canvases = canvases;
    const HeldOut h = held_out_losses(model, all, options);
    const double n = h.sentences, tokens = h.tokens;
    MeasureRows rows = {{"sentences", n, "", "held-out sentences"}, {"tokens", tokens, "", "scored: pieces and [SEP]"}};
    const std::vector<bool> whole = measure_whole(*this, sources, targets, rows);
    rows.push_back({"reconstruction", h.own, "nats/token",
                    text(model.insertion   ? "loss of an insertion into a random canvas"
                         : model.unmasks() ? fmt::format("bound on -log p(x|z), {} canvases", canvases)
                                           : "-log p(x|z)",
                         ", z of the sentence itself")});
    auto add = [&](MeasureRows more) { append(rows, more); };
    // Adds a row for each of these ranges of target tokens: 1, 2-3, 4-7 and so on. at_place[i] is the sum of the losses
    // of target token i, counted from 0, and reach[i] the number of sentences that have this token.
    for (std::size_t first = 0; first < h.reach.size(); first = 2 * first + 1) {
        const std::size_t end = std::min(2 * first + 1, h.reach.size());
        const auto sum = [&](const Numbers& x) { return std::accumulate(x.begin() + first, x.begin() + end, 0.0); };
        add({{fmt::format("reconstruction.{}", first + 1), sum(h.at_place) / sum(h.reach), "nats/token",
              first + 1 == end ? "of that target" : fmt::format("of the targets to {}", end)}});
    }
    if (latent) add({{"reconstruction_mean", h.mean_path, "nats/token", "the same with z = mu"}});
    if (latent && h.sentences > 1)
        add({{"reconstruction_other", h.other, "nats/token", "with the z of another sentence"}});
    if (latent && density) add({{"kl", h.kl, "nats/sentence", "KL(q(z|x) || p(z)), all latent layers"}});
    // If words are inserted in any order, the reconstruction loss is not -log p(x|z), so there is no bound of log p(x).
    if (latent && density && !model.insertion)
        add({{"elbo", h.elbo, "nats/sentence", "-(reconstruction + KL)" + given}});
    if (density && !model.insertion && !model.unmasks()) {
        const Numbers nlls = importance_weighted_nll(model, all, how.importance, how.seed);
        const double nll = sum_of(nlls);
        double letters = 0, nll_of_whole = 0;
        for (std::size_t i = 0; i < lines.size(); i++)
            if (whole[i])
                letters += 1 + std::count_if(lines[i].begin(), lines[i].end(), starts_code_point),
                    nll_of_whole += nlls[i];
        add({{"nll", nll / n, "nats/sentence",
              latent ? fmt::format("-log p(x){}, {} importance samples", given, how.importance)
                     : fmt::format("-log p(x){}, exact", given)},
             {"nll_token", nll / tokens, "nats/token", "the same a scored token" + given}});
        if (letters > 0)
            add({{"nll_character", nll_of_whole / letters, "nats/character",
                  "a character, the line's end one, of lines neither cut nor with [UNK]" + given}});
    }
    if (latent) {
        std::vector<Tokens> references;
        for (const Sentence* s : all) {
            const Tokens& wanted = targets.empty() ? s->ids : s->target;  // [CLS] ... [SEP], or a target with [SEP]
            references.emplace_back(wanted.begin() + targets.empty(), wanted.end() - 1);
        }
        Numbers passes;
        const std::vector<Tokens> written =
            decoder.write(reconstructions(model, all), how.search, how.seed, 0, &passes);
        if (model.insertion || model.unmasks())
            add({{"passes", sum_of(passes) / n, "", "passes of the decoder for a reconstruction, mean"}});
        const Closeness c = compare(references, written);
        add({{"exact", 100 * c.exact, "%", "greedy reconstructions equal to their sentence"},
             {"token_accuracy", 100 * c.token_accuracy, "%", "tokens met at their place"},
             {"edits", 100 * c.edits, "%", "tokens put in, taken out or changed, of all"},
             {"bleu4", c.bleu4, "", "corpus BLEU-4 over pieces"}});
        double read = 0, equal = 0;
        for (std::size_t i = 0; i < lines.size(); i++)
            if (whole[i]) read++, equal += references[i] == written[i];
        if (read > 0)
            add({{"exact_of_others", 100 * equal / read, "%",
                  "exact among the lines that are neither cut nor with [UNK]"}});
        if (model.options.conditional) measure_targets(*this, decoder, sentences, references, how, rows);
    }
    if (latent && density) {
        const LatentUse use = latent_use(model, all, how.seed);
        for (std::size_t l = 0; l < h.layer_kl.size(); l++)
            add({{fmt::format("kl.{}", l), h.layer_kl[l], "nats/sentence", fmt::format("of latent layer {}", l)}});
        add({{"active_units", double(use.active), "",
              fmt::format("of {}: numbers whose mean varies by more than 0.01", use.units)},
             {"mutual_information", use.mutual_information, "nats/sentence",
              fmt::format("of x and z; at most log n = {:.3f}", std::log(n))}});
    }
    if (latent && how.swap)
        measure_swaps(this->sentences(reference_lines(data.train, data.train_targets)), *this, decoder, all, how.seed,
                      how.search, rows);
    if (data.packed)
        log_line("note: ", data.origin.name, " is a packed text, so samples are not compared with training lines");
    if (!data.train.empty())
        measure_samples(data, sampled_lines(*this, decoder, how, sentences, how.seed), tokenizer, judge.get(), how.seed,
                        rows);
    return {{"samples", "held out"}, {"held_out"}, rows};
}

}  // namespace masquerade
