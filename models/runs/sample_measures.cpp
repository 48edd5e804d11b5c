// SPDX-License-Identifier: MIT
#include "models/runs/sample_measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/log.h"

namespace masquerade {

Judge::Judge(const std::string& path, Device device) {
    if (&family_of_run(path) == &find_family(UniLmSettings::name)) run_ = load_run<UniLmRun>(path, false, device);
    if (!run_ || run_->objective() != "lm")
        throw BadUsage("--judge: ", path, " is no language model; a run of ./train unilm objective=lm is expected");
}

std::unique_ptr<const Judge> judge_of(const Measuring& how) {
    return how.judge.empty() ? nullptr : std::make_unique<const Judge>(how.judge, how.device);
}

Strings Judge::whole(const Strings& lines) const {
    const std::vector<Lost> lost = lost_in(run_->tokenizer, lines, run_->settings.max_length);
    Strings whole;
    for (std::size_t i = 0; i < lines.size(); i++)
        if (lost[i].nothing()) whole.push_back(lines[i]);
    return whole;
}

double Judge::perplexity(const Strings& lines, SampleQuality& quality) const {
    const StoredSentences sentences = run_->sentences(lines);
    return std::exp(run_->losses(pointers_to(sentences), false).at(0).loss.per_document / (quality.words(lines) + 1));
}

void measure_samples(const TrainingText& t, const Strings& samples, const WordPiece& tokenizer, const Judge* judge,
                     std::uint64_t seed, MeasureRows& rows) {
    const Strings& others = reference_lines(t.held_out, t.held_out_targets);
    const Strings train = as_read(reference_lines(t.train, t.train_targets), tokenizer),
                  held_out =
                      as_read({others.begin(), others.begin() + std::min(samples.size(), others.size())}, tokenizer);
    SampleQuality quality(train);
    const TextQuality s = quality.measure(samples, held_out.size()), h = quality.measure(held_out, held_out.size());
    rows.push_back(
        {"samples", double(samples.size()), "", "lines; words are BERT's, lower-cased", {double(held_out.size())}});
    if (judge) {
        const Strings some = judge->whole(samples), beside = judge->whole(held_out);
        const auto share = [](const auto& part, const auto& all) { return 100 * double(part.size()) / all.size(); };
        if (some.empty() || beside.empty())
            log_line(
                "note: --judge: the language model can read no line without [UNK] and within its max_length, so "
                "samples are not judged");
        else
            rows.push_back(
                {"samples_judged",
                 judge->perplexity(some, quality),
                 "a word",
                 fmt::format("under the language model of --judge, which reads {:.0f} and {:.0f} % of the lines whole",
                             share(some, samples), share(beside, held_out)),
                 {judge->perplexity(beside, quality)}});
    }
    const auto add = [&](const std::string& key, double of_samples, double of_held_out, const char* unit,
                         const std::string& what) {
        rows.push_back({key, of_samples, unit, what, {of_held_out}});
    };
    const auto percent = [&](const char* key, double TextQuality::*of, const char* what) {
        add(key, 100 * s.*of, 100 * h.*of, "%", what);
    };
    const Perplexity &p = s.perplexity, &beside = h.perplexity;
    add("samples_perplexity", p.all, beside.all, "a word", "under a 5-gram model of the training text");
    add("samples_perplexity_known", p.known, beside.known, "a word", "the same, unknown words left out");
    add("samples_unknown", 100 * p.unknown, 100 * beside.unknown, "%", "words seen less than twice in training");
    percent("samples_distinct1", &TextQuality::distinct1, "different words");
    percent("samples_distinct2", &TextQuality::distinct2, "different pairs of words");
    percent("samples_repeated", &TextQuality::repeated, "lines equal to an earlier one");
    percent("samples_copied", &TextQuality::copied, "lines equal to a training line");
    percent("samples_match", &TextQuality::match, "of a line: its longest run of training text");
    add("samples_length", s.length, h.length, "words", "a line");
    // The shares of the lines with 0, 1, 2-3, 4-7, ... words.
    for (std::size_t bin = 0; bin < std::max(s.lengths.size(), h.lengths.size()); bin++) {
        const auto share = [&](const TextQuality& q) { return bin < q.lengths.size() ? 100 * q.lengths[bin] : 0; };
        const std::size_t least = (std::size_t(1) << bin) / 2, most = least == 0 ? 0 : 2 * least - 1;
        add(text("samples_length.", least), share(s), share(h), "%",
            least == most ? "lines of so many words" : text("... to ", most));
    }
    Strings known;
    for (std::size_t i : drawn(train.size(), samples.size(), Sequence(seed, "samples.beside")))
        known.push_back(train[i]);
    rows.push_back({"samples_reverse",
                    quality.reverse_perplexity(samples, others),
                    "a word",
                    "held-out text under a 5-gram model of the samples; of as many training lines",
                    {quality.reverse_perplexity(known, others)}});
}

}  // namespace masquerade
