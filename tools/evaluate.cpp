// SPDX-License-Identifier: MIT
// ./evaluate RUN: what a run knows of text it was not trained on.
#include "tools/evaluate/evaluate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/runs/run.h"

using namespace masquerade;

namespace {

void print(const Table& table) {
    bool headed = false;
    for (const Row& r : table.rows) {
        std::string heads, others;
        for (const std::string& head : table.heads) heads += fmt::format("{:>10}", head);
        for (double x : r.beside) others += fmt::format("{:>10.3f}", x);
        if (!others.empty() && !headed) fmt::print("{:<25}{}\n", "", heads);
        headed |= !others.empty();
        const std::string interval = r.interval.empty() ? "" : fmt::format("{:.1f} to {:.1f}; ", r.interval[0], r.interval[1]);
        fmt::print("{:<25}{:>10.3f}{}  {:<15}{}{}\n", r.key, r.value, others, r.unit, interval, r.meaning);
    }
}

void print_json(const Table& table) {
    nlohmann::ordered_json out;
    for (const Row& r : table.rows) {
        out[r.key] = {{"value", r.value}, {"unit", r.unit}};
        if (!r.interval.empty()) out[r.key]["low"] = r.interval[0], out[r.key]["high"] = r.interval[1];
        for (std::size_t i = 0; i < r.beside.size(); i++) out[r.key][table.keys[i]] = r.beside[i];
    }
    fmt::print("{}\n", out.dump(2));
}

}  // namespace

int main(int argc, char** argv) {
    Measured choice;
    LatentMeasuring latents(choice);
    TargetMeasuring targets(choice);
    LabelMeasuring labels;
    bool json = false;
    int average = 1;
    return run_program(
        argc, argv, "evaluate", "Measures a run on held-out text.",
        [&](Options& app) {
            app.value("run", choice.run, "RUN", "run folder, or one of its steps").required();
            app.value("--data", choice.data, "FILE", "other text than what the run held out");
            app.number("--average", average, 1, 1000000, "the mean weights of the last N checkpoints");
            app.number("--limit", choice.limit, 1, 100000000, "at most so many lines (default: 1000)");
            app.flag("--json", json, "the same as JSON");
            latents.declare(app);
            targets.declare(app);
            labels.declare(app);
        },
        [&](const Common& common) {
            const ModelKind& kind = model_of_run(choice.run);
            const std::unique_ptr<Run> run = kind.load(choice.run, false, common.device);
            if (average > 1) run->average_checkpoints(average);
            UniVaeRun* const from = run->latents();
            const TargetRun* const writer = run->targets();
            if (!from) refuse_options(latents.own, choice.run, kind.name);
            if (!writer) refuse_options(targets.own, choice.run, kind.name);
            if (!writer || !writer->inserts()) refuse_options(targets.of_insertion, choice.run, kind.name);
            Table table;
            if (from) {
                table = latents.measure(*from, common);
            } else if (writer) {
                table = targets.measure(*writer, common);
            } else if (const std::vector<Measure> found = run->measures(std::uint64_t(choice.limit)); !found.empty()) {
                if (!choice.data.empty()) throw BadUsage(text("--data: ", choice.run, " is measured on examples of its task"));
                for (const Measure& m : found) table.rows.push_back({m.key, m.value, m.unit, m.meaning});
            } else {
                throw BadUsage(text(choice.run, " is a run of ", kind.name, ", for which there is no measure"));
            }
            if (!labels.lines.empty()) labels.measure(*run, choice.run, common.seed, table.rows);
            json ? print_json(table) : print(table);
        },
        Work::models);
}
