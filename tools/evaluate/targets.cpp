// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cmath>

#include "data/text.h"
#include "engine/base/write_file.h"
#include "models/scoring/source_baselines.h"
#include "models/runs/target_run.h"
#include "models/scoring/text_metrics.h"
#include "tools/evaluate/evaluate.h"
#include "tools/origin.h"
#include "tools/outputs.h"

namespace masquerade {
namespace {

// A model without case writes lower-case letters: then its references are lower-cased (ASCII).
std::vector<std::string> lowered(std::vector<std::string> lines) {
    for (std::string& line : lines)
        for (char& c : line)
            if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    return lines;
}

struct Baseline {
    const char* name;
    std::vector<std::string> lines;
};

// Answers to the sources that have learned nothing.
std::vector<Baseline> baselines(const std::vector<std::string>& sources, const TrainingText& t,
                                bool characters) {
    Baseline first{"first 9", {}}, nearest{"nearest", {}};
    NearestSource finder(t.train);
    for (const std::string& line : sources) {
        first.lines.push_back(characters ? first_characters(line) : first_words(line));
        nearest.lines.push_back(t.train_targets[finder.find(line).index]);
    }
    return {first, nearest};
}

void write_outputs(const std::string& path, const TrainingText& t, const std::vector<std::string>& written) {
    std::string lines;
    for (std::size_t i = 0; i < written.size(); i++)
        lines += t.held_out[i] + '\t' + written[i] + '\t' + t.held_out_targets[i] + '\n';
    replace_file(path, lines);
}

// A row of each measure, of what was written and of the baselines.
void measure_outputs(const std::vector<std::vector<std::string>>& outputs,
                     const std::vector<std::string>& references, bool characters, std::vector<Row>& rows) {
    const RougeTokens rouge_tokens = characters ? RougeTokens::characters : RougeTokens::words;
    const BleuTokens bleu_tokens = characters ? BleuTokens::characters : BleuTokens::words_13a;
    std::vector<Rouge> rouges;
    std::vector<Form> forms;
    std::vector<double> bleus;
    for (const std::vector<std::string>& lines : outputs) {
        rouges.push_back(rouge(references, lines, rouge_tokens));
        forms.push_back(form(references, lines));
        bleus.push_back(bleu(references, lines, bleu_tokens).score);
    }
    auto row = [&](const char* key, const char* unit, const char* meaning, auto value) {
        Row r{key, unit, meaning, value(0)};
        for (std::size_t i = 1; i < outputs.size(); i++) r.beside.push_back(value(i));
        rows.push_back(r);
    };
    row("rouge1", "%", "F1, mean over the pairs", [&](std::size_t i) { return rouges[i].rouge1.f1; });
    row("rouge2", "%", "F1", [&](std::size_t i) { return rouges[i].rouge2.f1; });
    row("rougeL", "%", "F1", [&](std::size_t i) { return rouges[i].rougeL.f1; });
    row("bleu", "", characters ? "corpus BLEU-4 over characters" : "corpus BLEU-4, 13a",
        [&](std::size_t i) { return bleus[i]; });
    row("exact", "%", "equal to their reference", [&](std::size_t i) { return forms[i].exact; });
    row("same_length", "%", "as many characters as it", [&](std::size_t i) { return forms[i].same_length; });
    row("without_repeats", "%", "no character twice",
        [&](std::size_t i) { return forms[i].without_repeats; });
    row("length_ratio", "", "characters over its characters, mean",
        [&](std::size_t i) { return forms[i].length_ratio; });
}

}  // namespace

void TargetMeasuring::declare(CLI::App& app) {
    CLI::Option_group* group = app.add_option_group("of unilm and seq2seq");
    own = group;
    group->add_option("--beam", search.beams, "targets by beam search of this width (default: 1, greedy)")
        ->check(CLI::Range(1, 1024))
        ->option_text("K");
    group->add_option("--length-penalty", search.length_penalty, "alpha of a beam's score (default: 1)")
        ->check(CLI::Range(-100.0, 100.0))
        ->option_text("ALPHA");
    group->add_flag("--characters", characters, "ROUGE and BLEU over characters: for Chinese");
    group->add_option("--outputs", outputs, "write source<TAB>output<TAB>reference there")
        ->option_text("FILE");
}

std::vector<Row> TargetMeasuring::measure(const TargetRun& run, const Common& common) const {
    const TextOrigin origin = origin_of(run.run_json, choice.run + "/run.json");
    expect_no_input("--outputs", outputs,
                    {{"RUN", RunFolder::open(choice.run).path()},
                     {"--data", choice.data},
                     {"the run's text", origin.file},
                     {"the run's held-out text", origin.held_out_file}});
    TrainingText t = read_again(origin);
    if (!choice.data.empty()) {
        Text given = read_text(choice.data);
        t.held_out = std::move(given.source);
        t.held_out_targets = std::move(given.target);
    }
    const bool pairs = !t.held_out_targets.empty();
    const std::size_t n = std::min(t.held_out.size(), std::size_t(choice.limit));
    t.held_out.resize(n);
    if (pairs) t.held_out_targets.resize(n);
    if (n == 0) throw BadInput("there is no held-out line to evaluate on; give --data FILE");
    const std::vector<Sentence> sentences = run.sentences(t.held_out, t.held_out_targets);
    const std::vector<const Sentence*> all = pointers_to(sentences);

    std::vector<Row> rows = {{"documents", "", "held out", double(n)}};
    for (const PartLoss& part : run.losses(all, pairs)) {
        const std::string& name = part.objective;
        const ScoredLoss& loss = part.loss;
        rows.push_back({name + ".tokens", "", "scored", double(loss.tokens)});
        rows.push_back({name + ".loss", "nats/token", "cross-entropy", loss.per_token});
        rows.push_back({name + ".perplexity", "a token", "its exponential", std::exp(loss.per_token)});
    }
    if (rows.size() == 1)  // every objective asks for targets
        run.refuse_sentences(choice.data.empty() ? t.origin.name : choice.data);
    if (!pairs || !run.writes()) {
        if (!outputs.empty())
            throw BadUsage(text("--outputs: targets are written for pairs; ", choice.run, " was trained on ",
                                run.objective(), pairs ? "" : ", and there are no pairs"));
        return rows;
    }
    std::vector<std::string> written;
    for (const auto& hypotheses : run.write(all, search, common.seed))
        written.push_back(run.text(hypotheses.at(0).tokens));
    if (!outputs.empty()) write_outputs(outputs, t, written);
    std::vector<std::vector<std::string>> compared = {written};
    if (!t.train_targets.empty())
        for (Baseline& b : baselines(t.held_out, t, characters)) compared.push_back(std::move(b.lines));
    if (!run.common().cased) {
        t.held_out_targets = lowered(t.held_out_targets);
        for (auto& lines : compared) lines = lowered(lines);
    }
    measure_outputs(compared, t.held_out_targets, characters, rows);
    return rows;
}

}  // namespace masquerade
