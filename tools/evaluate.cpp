// SPDX-License-Identifier: MIT
// ./evaluate RUN...: measures the models in run folders on held-out text.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>

#include "data/text.h"
#include "engine/base/log.h"
#include "engine/io/file.h"
#include "models/runs/measures.h"
#include "models/runs/run.h"
#include "models/scoring/probe.h"
#include "tools/run_options.h"
#include "tools/say.h"

using namespace masquerade;

namespace {

void print(const Measures& table) {
    bool headed = false;
    for (const Measure& r : table.rows) {
        std::string heads, others;
        for (const std::string& head : table.heads) heads += fmt::format("{:>10}", head);
        for (double x : r.beside) others += fmt::format(" {:>9.3f}", x);
        if (!others.empty() && !headed) say("{:<25}{}\n", "", heads);
        headed |= !others.empty();
        const int decimals = r.unit.rfind("nats", 0) == 0 ? 3 : 1;
        const std::string interval =
            r.interval.empty() ? ""
                               : fmt::format("{:.{}f} to {:.{}f}; ", r.interval[0], decimals, r.interval[1], decimals);
        say_wrapped(52 + int(others.size()), "{:<25}{:>10.3f}{}  {:<15}{}{}\n", r.key, r.value, others, r.unit,
                    interval, r.meaning);
    }
}

nlohmann::ordered_json json_of(const Measures& table) {
    auto out = nlohmann::ordered_json::object();
    for (const Measure& r : table.rows) {
        out[r.key] = {{"value", r.value}, {"unit", r.unit}};
        if (!r.interval.empty()) out[r.key]["low"] = r.interval[0], out[r.key]["high"] = r.interval[1];
        for (std::size_t i = 0; i < r.beside.size(); i++) out[r.key][table.keys[i]] = r.beside[i];
    }
    return out;
}

double mean_of(const Numbers& x) { return std::accumulate(x.begin(), x.end(), 0.0) / double(x.size()); }
// Standard deviation of a sample: the divisor is n - 1.
double deviation_of(const Numbers& x) {
    double sum = 0;
    for (double each : x) sum += (each - mean_of(x)) * (each - mean_of(x));
    return std::sqrt(sum / double(x.size() - 1));
}

// The measures of several runs, which are printed as a table with a line for each run. A run may lack measures that
// others have.
class ComparisonTable {
  public:
    void add(const std::string& run, const Measures& measures) {
        runs_.push_back(run);
        for (const Measure& m : measures.rows) {
            auto column = std::find_if(columns_.begin(), columns_.end(),
                                       [&](const Column& c) { return c.key == m.key && c.unit == m.unit; });
            if (column == columns_.end()) column = columns_.insert(column, {m.key, m.unit, {}, {}});
            if (std::count(column->meanings.begin(), column->meanings.end(), m.meaning) == 0)
                column->meanings.push_back(m.meaning);
            column->values[runs_.size() - 1] = m.value;
        }
    }
    // Prints the table in blocks of as many columns as fit into 80 characters, then the unit and the meaning of each
    // measure. Prints nothing if no run was added.
    void print() const {
        Strings lines = {""};  // the names of the lines; the first line has the heads of the columns
        lines.insert(lines.end(), runs_.begin(), runs_.end());
        lines.insert(lines.end(), {"mean", "deviation"});
        std::size_t label = 0, longest = 0;
        for (const std::string& name : lines) label = std::max(label, name.size());
        std::vector<std::size_t> widths;  // of the columns
        for (const Column& c : columns_) widths.push_back(width_of(c));
        for (std::size_t first = 0, end; first < columns_.size(); first = end) {
            std::size_t wide = label;
            for (end = first; end < columns_.size(); end++) {
                wide += widths[end];
                if (wide > 80 && end > first) break;
            }
            for (std::size_t line = 0; line < lines.size(); line++) {
                std::string all = fmt::format("{:<{}}", lines[line], label);
                for (std::size_t i = first; i < end; i++)
                    all += fmt::format("{:>{}}", cell(columns_[i], line), widths[i]);
                say("{}\n", all);
            }
            say("\n");
        }
        for (const Column& c : columns_) longest = std::max(longest, c.key.size());
        for (const Column& c : columns_)
            for (const std::string& meaning : c.meanings) say("{:<{}}  {:<15}{}\n", c.key, longest, c.unit, meaning);
    }

  private:
    struct Column {
        std::string key, unit;
        Strings meanings;                      // the different meanings that runs give
        std::map<std::size_t, double> values;  // by the index of the run
    };
    // Returns the text of a column in a line of the table; "-" if there is no number.
    std::string cell(const Column& c, std::size_t line) const {
        if (line == 0) return c.key;
        Numbers values;
        for (const auto& [run, value] : c.values)
            if (line > runs_.size() || run == line - 1) values.push_back(value);
        // There is no mean if a run lacks the measure, or if the measure has another meaning in one of the runs.
        const bool comparable = values.size() == runs_.size() && c.meanings.size() == 1 && runs_.size() > 1;
        if (values.empty() || (line > runs_.size() && !comparable)) return "-";
        if (line <= runs_.size()) return fmt::format("{:.3f}", values[0]);
        return fmt::format("{:.3f}", line > runs_.size() + 1 ? deviation_of(values) : mean_of(values));
    }
    // Returns the width of a column: two spaces, and its longest text or at least 9 characters.
    std::size_t width_of(const Column& c) const {
        std::size_t longest = 9;
        for (std::size_t line = 0; line < runs_.size() + 3; line++) longest = std::max(longest, cell(c, line).size());
        return 2 + longest;
    }

    Strings runs_;
    std::vector<Column> columns_;
};

// Declares the groups of options, and returns them.
OptionGroups declare_groups(Options& app, Measuring& how) {
    Options latents = app.group("of univae");
    latents.number("--importance", how.importance, 1, 100000,
                   "latents drawn for each sentence to estimate log p(x) by importance sampling (default: 20)", "S");
    declare_samples(latents, how.sampling);
    latents.flag("--swap", how.swap,
                 "replace some latents of a sentence by those of another one, and measure which of the two sentences "
                 "the result resembles. This is done for the latents of each latent layer alone, for those of the "
                 "lower half of these layers, and for those of the upper half");
    Options texts = app.group("of univae, and of unilm trained on sentences, not pairs");
    texts.number("--samples", how.samples, 1, 1000000,
                 "number of samples to draw and measure (default: 1000; for unilm: none)");
    texts.input("--judge", how.judge, "RUN",
                "also print the samples' perplexity under this language model (unilm objective=lm)");
    Options targets = app.group("of unilm and seq2seq");
    targets.number("--beam", how.search.beams, 1, 1024, "targets by beam search of this width (default: 1, greedy)",
                   "K");
    targets.number("--length-penalty", how.search.length_penalty, -100.0, 100.0,
                   "alpha of a beam's score, sum of log p / length^alpha (default: 1)", "ALPHA");
    targets.number(
        "--orders", how.orders, 1, 100000,
        "objective=diffusion, block-diffusion or any-order: besides the upper bound on -log p(x) that is always "
        "printed (x: a sentence or target), print a second one: -log of the mean of p(x | order) over S random orders "
        "of writing",
        "S");
    targets.flag("--characters", how.characters, "ROUGE and BLEU over characters, for Chinese");
    targets.output(
        "--outputs", how.outputs, "FILE",
        "write four columns: source, output, reference, and the reference as it was tokenized for the comparison");
    return {{latents, Family::of_latents},
            {texts, Family::of_latents | Family::of_search},
            {targets, Family::of_search | Family::of_insertion},
            {declare_insertion(app, how.search.canvas), Family::of_insertion | Family::of_latents},
            {declare_any_order(app, how.search.canvas), Family::of_insertion | Family::of_latents | Family::of_search},
            {declare_unmask(app, how.search.unmask, "for the samples of unilm"),
             Family::of_search | Family::of_latents}};
}

// Measures how well classifiers can predict the labels of lines from the vectors that a run's model computes for them.
struct LabelMeasuring {
    std::string lines;
    std::vector<int> labels = {0};
    int draws = 1;

    void declare(Options& app) {
        Options own = app.group(
            "for labelled lines (univae, except with latent_layers=0; unilm, seq2seq, insertion; classify with a "
            "folder of single texts)");
        const Option file = own.input(
            "--labelled", lines, "FILE",
            "measure how well classifiers predict the labels of this file of text<TAB>label from the vectors of "
            "its lines (./generate --vectors saves such vectors). Every fifth line is for the test, the others are for "
            "training");
        own.number("--labels", labels, 0, 1000000,
                   "train the classifiers on N lines of each label; 0: on all lines but those for the test (default: "
                   "0). Several numbers: a result for each",
                   "N,...")
            .list()
            .needs(file);
        own.number("--draws", draws, 1, 1000,
                   "repeat with N random choices of the lines to train on, and print the mean, lowest and highest "
                   "results (default: 1)")
            .needs(file);
    }
    // Reads the lines and their labels, as the source and target of a text.
    Text read() const {
        const std::string bytes = read_bytes(lines);
        std::istringstream all(bytes);
        TextCounts counts;
        bool found = false;
        std::string of_line, label;
        for (std::string line; !found && std::getline(all, line);)
            found = read_line(line, true, longest_sentence, counts, of_line, label);
        if (!found)
            throw BadInput("--labelled: ", lines,
                           " has no line with both a text and a label; text<TAB>label is expected on every line");
        Text file = parse_text(bytes, lines);
        if (!file.warning.empty()) log_line("warning: ", file.warning);
        if (file.target.empty())
            throw BadInput("--labelled: ", lines,
                           " has no labels on most of its lines; text<TAB>label is expected on every line");
        return file;
    }
    void measure(const Run& run, const std::string& name, std::uint64_t seed, std::vector<Measure>& rows) const {
        const Text file = read();
        const auto vectors = run.features(file.source);
        if (vectors.empty())
            throw BadUsage(
                "--labelled: ", name,
                " gives no vectors of lines; expected a univae with latents, a unilm, a seq2seq, an insertion, or a "
                "classify with a folder of single texts");
        const auto words = encode_lines(run.tokenizer, file.source, INT_MAX);
        const struct {
            const char *key, *meaning;
            std::function<double(const LabelledSplit&)> share_right;
        } classifiers[] = {
            {"probe", "by a linear probe", [&](const LabelledSplit& s) { return linear_probe(vectors, s); }},
            {"probe_neighbours", "by the five nearest",
             [&](const LabelledSplit& s) { return nearest_neighbours(vectors, s, 5); }},
            {"probe_words", "by naive Bayes over the tokens, without a model",
             [&](const LabelledSplit& s) { return naive_bayes(words, s); }},
        };
        const auto split = [&](int most, int draw) {
            try {
                return split_labels(file.target, most, seed, draw);
            } catch (const BadInput& e) {
                throw BadInput("--labelled ", lines, ": ", e.what());
            }
        };
        if (std::set<int>(labels.begin(), labels.end()).size() < labels.size())
            throw BadUsage("--labels has a number twice");
        for (int most : labels) {
            std::vector<LabelledSplit> splits;
            for (int draw = 0; draw < draws; draw++) splits.push_back(split(most, draw));
            for (const auto& [key, meaning, share_right] : classifiers) {
                Numbers right;
                for (const LabelledSplit& s : splits) right.push_back(100 * share_right(s));
                Measure row{key, mean_of(right), "%",
                            fmt::format("of {} lines right, {} labels, trained on {}, {}", splits[0].test.size(),
                                        splits[0].classes, splits[0].train.size(), meaning)};
                if (labels.size() > 1) row.key += text('.', most);
                if (draws > 1)
                    row.interval = {*std::min_element(right.begin(), right.end()),
                                    *std::max_element(right.begin(), right.end())};
                rows.push_back(row);
            }
        }
        rows.push_back({"clusters", cluster_information(vectors, split(0, 0), seed), "",
                        "normalised mutual information of labels and k-means"});
    }
};

}  // namespace

int main(int argc, char** argv) {
    Measuring how;
    Strings runs;
    OptionGroups groups;
    LabelMeasuring labels;
    bool json = false;
    RunWeights weights;
    return run_program(
        argc, argv, "evaluate",
        "Measures a run on held-out text, or compares several runs. Some options are only for some models, which their "
        "headings name (./train --help lists all models). Words such as ema= and source_prior=true are settings of the "
        "training (./train).",
        [&](Options& app) {
            app.input("run", runs, "RUN...",
                      "run folder, or one of its checkpoints; several runs are compared in a table")
                .required();
            app.input("--data", how.data, "FILE", "measure on this text instead of the held-out text of the run");
            weights.declare(app);
            app.number("--limit", how.limit, 1, 100000000, "maximum number of lines (default: 1000)");
            app.flag("--json", json, "print JSON; of several runs, one line for each");
            groups = declare_groups(app, how);
            labels.declare(app);
            app.on_help([&, app](bool all) { return help_of_runs(app, groups, runs, all); }, all_of_runs);
        },
        [&](const Common& common) {
            const bool several = runs.size() > 1;
            if (several && !how.outputs.empty()) throw BadUsage("--outputs writes one file: give one run");
            // All runs must support the options; this is checked before the first run is measured.
            for (const std::string& name : runs)
                for (const auto& [group, bits] : groups)
                    if (const Family& kind = family_of_run(name); !(kind.options & bits))
                        refuse_options(group, name, kind.name);
            how.seed = common.seed;
            how.device = common.device;
            if (!alone() && std::filesystem::is_regular_file(how.data))
                expect_equal("text " + hash_text(read_file(how.data)));
            ComparisonTable compared;
            const auto measure = [&](const std::string& name) {
                how.run = name;
                const auto run = weights.load(name, common.device);
                Measures table = run->measures(how);
                if (!labels.lines.empty()) labels.measure(*run, name, common.seed, table.rows);
                if (json) {
                    nlohmann::ordered_json line;
                    if (several) line["run"] = json_name(name);
                    line.update(json_of(table));
                    say("{}\n", Lines{line.dump(several ? -1 : 2)});
                } else if (several) {
                    compared.add(name, table);
                } else {
                    print(table);
                }
            };
            try {
                for (const std::string& name : runs) measure(name);
            } catch (const Error&) {
                compared.print();  // the runs that were measured before the error
                throw;
            }
            compared.print();
        },
        Work::models, Together::yes);
}
