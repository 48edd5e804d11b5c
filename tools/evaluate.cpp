// SPDX-License-Identifier: MIT
// ./evaluate RUN: what a run knows of text it was not trained on.
#include "tools/evaluate/evaluate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/runs/run.h"

using namespace masquerade;

namespace {

// What stands beside the run's own figures, as the heads of columns and as keys of JSON.
struct Beside {
    std::vector<std::string> heads, keys;
};

void print(const std::vector<Row>& rows, const Beside& beside) {
    bool headed = false;
    for (const Row& r : rows) {
        if (!r.beside.empty() && !headed) {
            fmt::print("{:<25}", "");
            for (const std::string& head : beside.heads) fmt::print("{:>10}", head);
            fmt::print("\n");
            headed = true;
        }
        std::string others;
        for (double x : r.beside) others += fmt::format("{:>10.3f}", x);
        fmt::print("{:<25}{:>10.3f}{}  {:<15}{}\n", r.key, r.value, others, r.unit, r.meaning);
    }
}

void print_json(const std::vector<Row>& rows, const Beside& beside) {
    nlohmann::ordered_json out;
    for (const Row& r : rows) {
        out[r.key] = {{"value", r.value}, {"unit", r.unit}};
        for (std::size_t i = 0; i < r.beside.size(); i++) out[r.key][beside.keys[i]] = r.beside[i];
    }
    fmt::print("{}\n", out.dump(2));
}

}  // namespace

int main(int argc, char** argv) {
    Measured choice;
    UniVaeMeasuring univae(choice);
    TargetMeasuring targets(choice);
    bool json = false;
    return run_program(
        argc, argv, "evaluate", "Measures a run on held-out text.",
        [&](CLI::App& app) {
            app.add_option("run", choice.run, "run folder, or one of its steps")
                ->required()
                ->option_text("RUN");
            app.add_option("--data", choice.data, "other text than what the run held out")
                ->option_text("FILE");
            app.add_option("--limit", choice.limit, "at most so many lines (default: 1000)")
                ->check(CLI::Range(1, 100000000))
                ->option_text("N");
            app.add_flag("--json", json, "the same as JSON");
            univae.declare(app);
            targets.declare(app);
        },
        [&](const Common& common) {
            const ModelKind& kind = model_of_run(choice.run);
            const std::unique_ptr<Run> run = kind.load(choice.run, false, common.device);
            std::vector<Row> rows;
            Beside beside;
            if (UniVaeRun* from = run->latents()) {
                refuse_options(targets.own, choice.run, kind.name);
                rows = univae.measure(*from, common);
                beside = {{"samples", "held out"}, {"held_out"}};
            } else if (const TargetRun* writer = run->targets()) {
                refuse_options(univae.own, choice.run, kind.name);
                rows = targets.measure(*writer, common);
                beside = {{"written", "first 9", "nearest"}, {"first_9", "nearest"}};
            } else {
                throw BadUsage(text(choice.run, " is a run of ", kind.name, ", for which there is no measure"));
            }
            json ? print_json(rows, beside) : print(rows, beside);
        },
        Work::models);
}
