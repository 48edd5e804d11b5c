// SPDX-License-Identifier: MIT
// ./generate RUN: samples, or what comes on standard input written again, or its targets; which of these, the run's model
// decides. One line out for one line in.
#include "models/runs/run.h"
#include "tools/generate/generate.h"

using namespace masquerade;

int main(int argc, char** argv) {
    Choice choice;
    Searching searching(choice);
    UniVaeWriting univae(searching);
    TargetWriting targets(searching);
    CLI::Option* temperature = nullptr;
    return run_program(
        argc, argv, "generate",
        "Writes by a run: univae samples, or writes lines of standard input again; unilm and seq2seq write a "
        "target for every line of standard input.",
        [&](CLI::App& app) {
            app.add_option("run", choice.run, "run folder, or one of its steps")
                ->required()
                ->option_text("RUN");
            app.add_option("--count", choice.count, "so many samples (default of univae: 10)")
                ->check(CLI::Range(1, 100000000))
                ->option_text("N");
            SamplingOptions& sampling = choice.sampling;
            temperature =
                app.add_option("--temperature", sampling.temperature, "0: the most likely token (default)")
                    ->check(CLI::Range(0.0, 100.0))
                    ->option_text("T");
            app.add_option("--top-k", sampling.top_k, "draw among the K most likely")
                ->check(CLI::Range(1, 100000000))
                ->option_text("K");
            app.add_option("--top-p", sampling.top_p, "draw among the fewest that have share P")
                ->check(CLI::Range(0.0, 1.0))
                ->option_text("P");
            searching.declare(app);
            univae.declare(app);
            targets.declare(app);
        },
        [&](const Common& common) {
            choice.temperature_given = temperature->count() > 0;
            if (!choice.temperature_given && (choice.sampling.top_k > 0 || choice.sampling.top_p < 1)) {
                choice.sampling.temperature = 1;
                choice.temperature_given = true;
            }
            const ModelKind& kind = model_of_run(choice.run);
            const std::unique_ptr<Run> run = kind.load(choice.run, false, common.device);
            if (UniVaeRun* from = run->latents()) {
                refuse_options(targets.own, choice.run, kind.name);
                univae.generate(*from, common);
            } else if (const TargetRun* writer = run->targets()) {
                refuse_options(univae.own, choice.run, kind.name);
                targets.generate(*writer, common);
            } else {
                throw BadUsage(text(choice.run, " is a run of ", kind.name, ", which does not write"));
            }
        },
        Work::models);
}
