// SPDX-License-Identifier: MIT
#include <cmath>

#include "data/text.h"
#include "engine/base/log.h"
#include "engine/base/processes.h"
#include "engine/base/write_file.h"
#include "models/scoring/source_baselines.h"
#include "models/runs/sample_measures.h"
#include "models/runs/target_run.h"
#include "models/scoring/text_metrics.h"
#include "models/runs/origin.h"

namespace masquerade {

Strings as_read(Strings lines, const WordPiece& tokenizer) {
    for (std::string& line : lines) line = tokenizer.reading(line);
    return lines;
}

namespace {

// Returns the outputs of two baselines for the sources. The first baseline's output is the first 9 words (or
// characters) of the source; the second baseline's output is the target of the most similar training source.
std::vector<Strings> baselines(const Strings& sources, const TrainingText& t, bool characters) {
    Strings first, nearest;
    NearestSource finder(t.train);
    for (const std::string& line : sources) {
        first.push_back(characters ? first_characters(line) : first_words(line));
        nearest.push_back(t.train_targets[finder.find(line).index]);
    }
    return {first, nearest};
}

// Returns the option about targets that is given, or null.
const char* target_option(const Measuring& how) {
    return !how.outputs.empty()             ? "--outputs"
           : how.search.beams > 1           ? "--beam"
           : how.search.length_penalty != 1 ? "--length-penalty"
           : how.characters                 ? "--characters"
                                            : nullptr;
}

void write_outputs(const std::string& path, const std::vector<const Strings*>& columns) {
    std::string table;
    for (std::size_t i = 0; i < columns[0]->size(); i++)
        for (const Strings* column : columns) table += (*column)[i] + (column == columns.back() ? '\n' : '\t');
    replace_file(path, table);
}

// Adds a row for each measure of the generated lines, which are outputs[0]. The row also has the measure of each
// baseline, whose lines are outputs[1], outputs[2] and so on.
void measure_outputs(const std::vector<Strings>& outputs, const Strings& references, bool characters,
                     MeasureRows& rows) {
    const TextUnits units = characters ? TextUnits::characters : TextUnits::words;
    MeasureRows measures;
    for (const Strings& lines : outputs) {
        const Rouge r = rouge(references, lines, units);
        const Form f = form(references, lines);
        const MeasureRows ours = {
            {"rouge1", r.rouge1.f1, "%", "F1, mean over the pairs"},
            {"rouge2", r.rouge2.f1, "%", "F1"},
            {"rougeL", r.rougeL.f1, "%", "F1"},
            {"bleu", bleu(references, lines, units).score, "",
             characters ? "corpus BLEU-4 over characters" : "corpus BLEU-4, 13a"},
            {"exact", f.exact, "%", "equal to their reference"},
            {"same_length", f.same_length, "%", "as many characters as it"},
            {"without_repeats", f.without_repeats, "%", "no character twice"},
            {"length_ratio", f.length_ratio, "", "characters over its characters, mean"},
        };
        for (std::size_t m = 0; m < measures.size(); m++) measures[m].beside.push_back(ours[m].value);
        if (measures.empty()) measures = ours;
    }
    append(rows, measures);
}

}  // namespace

Strings TargetRun::write_lines(const Sentences& sources, const SearchOptions& options, std::uint64_t seed,
                               MeasureRows& rows) const {
    Strings lines;
    if (unmasks(options)) {
        double passes = 0, tokens = 0, ended = 0;  // sums over the lines of this process
        for (const std::vector<Written>& samples : unmask(own_part(sources, 64), options, seed)) {
            const Written& w = samples.at(0);
            lines.push_back(decode(w.tokens));
            passes += w.rounds + w.rounds_of_others + (counter() != nullptr);
            tokens += w.tokens.size();
            ended += w.ended;
        }
        const double n = sources.size(), all_passes = sum_over_processes(passes);
        rows.push_back({"passes", all_passes / n, "", "of the model, mean"});
        rows.push_back({"tokens_per_pass", sum_over_processes(tokens) / std::max(1.0, all_passes), "",
                        "written, without the end"});
        if (!draws_length())
            rows.push_back(
                {"ended", 100 * sum_over_processes(ended) / n, "%", "with [SEP] at a place that was written"});
        return gather_lists(lines);
    }
    refuse_unmasking(options, no_lengths);
    for (const auto& hypotheses : write(own_part(sources, 64), options, seed))
        lines.push_back(decode(hypotheses.at(0).tokens));
    return gather_lists(lines);
}

// Samples texts, each from nothing. May append measures of the generation to `rows`.
Strings TargetRun::sampled_lines(int count, SearchOptions options, std::uint64_t seed, MeasureRows& rows) const {
    options.samples = 1;
    const bool backward = !unmasks(options) && !writes();
    StoredSentences from = backward ? endings(Strings(count)) : beginnings(Strings(count));
    for (int i = 0; i < count; i++) from[i].name = i;
    const Sentences sources = pointers_to(from);
    if (!backward) return write_lines(sources, options, seed, rows);
    Strings lines;
    for (const Hypotheses& h : write_before(own_part(sources, 64), options, seed))
        lines.push_back(decode(h.at(0).tokens));
    return gather_lists(lines);
}

Measures TargetRun::measures(const Measuring& how) {
    const bool sampling = how.samples > 0;
    if (how.orders > 0 && !diffusion())
        throw BadUsage("--orders is an option of runs of objective=diffusion; this run was trained with objective=",
                       objective());
    const bool from_nothing = (continues() && (writes() || unmasks())) || (writes_backward() && !writes());
    if ((sampling || !how.judge.empty()) && !from_nothing)
        throw BadUsage(sampling ? "--samples" : "--judge",
                       " is of runs that generate texts from nothing, which this run of objective=", objective(),
                       " does not");
    if (!sampling && !how.judge.empty()) throw BadUsage("--judge measures samples: give --samples N as well");
    const std::unique_ptr<const Judge> judge = judge_of(how);
    const TextOrigin origin = origin_of(run_json, how.run + "/run.json");
    TrainingText t = how.data.empty() || how.samples > 0
                         ? read_again(origin)
                         : read_if_there(origin, "without it, the baselines are not measured");
    if (!how.data.empty()) {
        Text given = read_text(how.data);
        t.held_out = std::move(given.source);
        t.held_out_targets = std::move(given.target);
    }
    const bool pairs = !t.held_out_targets.empty();
    Strings sources = t.held_out, targets = t.held_out_targets;
    const std::size_t n = std::min<std::size_t>(sources.size(), how.limit);
    sources.resize(n);
    if (pairs) targets.resize(n);
    if (n == 0) throw BadInput("there is no held-out line to evaluate on; give --data FILE");
    const StoredSentences sentences = this->sentences(sources, targets);
    const Sentences all = pointers_to(sentences);

    Measures table{{"written", "first 9", "nearest"},
                   {"first_9", "nearest"},
                   {{"documents", double(n), "", "held out"}}};
    MeasureRows& rows = table.rows;
    const auto needs_pairs = [](const ObjectiveMixture::Part& part) { return part.objective->has(Objective::pairs); };
    if (!pairs && std::all_of(mixture.parts.begin(), mixture.parts.end(), needs_pairs))
        refuse_sentences(how.data.empty() ? t.origin.name : how.data);
    // A run of masked diffusion that continues texts would take a whole source, with its end, as given.
    const bool writing = pairs && !sampling && (writes() || unmasks()) && !(diffusion() && continues());
    const char* const option = writing ? nullptr : target_option(how);
    if (option && sampling && pairs) throw BadUsage(option, " is about targets, which --samples does not write");
    if (option)
        throw BadUsage(option, ": targets are written only for pairs; ", how.run, " was trained on ", objective(),
                       pairs ? "" : ", and the text holds no pairs");
    if (!(writing || sampling) || (diffusion() && !unmasks(how.search)))
        refuse_unmasking(how.search, !pairs        ? "./evaluate writes targets only for pairs"
                                     : continues() ? "./evaluate writes no targets with a run of texts"
                                                   : no_lengths);
    for (const ObjectiveMixture::Part& part : mixture.parts) {
        const Objective& objective = *part.objective;
        if (!pairs && objective.has(Objective::pairs)) continue;
        const std::string name = objective.name;
        const auto add = [&](const char* key, double value, const char* unit, const std::string& meaning,
                             const Numbers& interval = {}) {
            rows.push_back({name + key, value, unit, meaning, {}, interval});
        };
        if (objective.has(Objective::bound)) {
            const LikelihoodBound bound = this->bound(objective, all, how.seed);
            const auto [mean, low, high] = bound.per_token;
            const bool length_given = draws_length(objective);
            const char* const what =
                length_given ? "-log p, given the length, is at most this" : "-log p is at most this";
            add(".tokens", bound.tokens, "", "scored");
            if (bound.tokens > 0) {
                add(".bound", mean, "nats/token", what, {low, high});
                add(".noise", bound.noise, "nats/token", "at most, of the bound, by the random hidden tokens");
                add(".perplexity", std::exp(mean), "a token", "exp of the bound", {std::exp(low), std::exp(high)});
            }
            add(".sentence", bound.per_document, "nats/sentence", "the bound of a sentence, mean");
            if (how.orders > 0 && bound.tokens > 0) {
                const auto [found, least, most] = bound_by_orders(objective, all, how.orders, how.seed).per_token;
                add(".orders", found, "nats/token", text("the same, by ", how.orders, " random orders of each text"),
                    {least, most});
            }
            if (knows_length(objective))
                add(".length", length_cost(all), "nats/sentence", "-log p of the length, mean");
            continue;
        }
        const ScoredLoss loss = this->loss(objective, all);
        // An insertion model has one loss for each canvas, which is not -log p of a token.
        if (objective.has(Objective::canvases)) {
            add(".canvases", loss.tokens, "", "scored");
            add(".loss", loss.per_token, "nats/canvas", "mean over the slots of a random canvas");
            continue;
        }
        add(".tokens", loss.tokens, "", "scored");
        if (loss.tokens == 0) continue;
        add(".loss", loss.per_token, "nats/token", "cross-entropy");
        add(".perplexity", std::exp(loss.per_token), "a token", "its exponential");
    }
    if (!writing) {
        if (sampling && t.packed)
            log_line("note: ", t.origin.name, " is a packed text, so samples are not compared with training lines");
        table.heads = {"samples", "held out"}, table.keys = {"held_out"};
        if (sampling && !t.train.empty())
            measure_samples(t, sampled_lines(how.samples, how.search, how.seed, rows), tokenizer, judge.get(), how.seed,
                            rows);
        return table;
    }
    Strings written = write_lines(all, how.search, how.seed, rows);
    const Strings references = as_read(targets, tokenizer);
    if (!how.outputs.empty() && first_process())
        write_outputs(how.outputs, {&sources, &written, &targets, &references});
    std::vector<Strings> compared = {std::move(written)};
    if (t.packed) log_line("note: ", t.origin.name, " is a packed text, so no nearest training source is searched for");
    if (!t.train_targets.empty())
        for (Strings& lines : baselines(sources, t, how.characters))
            compared.push_back(as_read(std::move(lines), tokenizer));
    measure_outputs(compared, references, how.characters, rows);
    return table;
}

}  // namespace masquerade
