// SPDX-License-Identifier: MIT
// ./generate RUN: samples, or what comes on standard input written again, or its targets; which of these, the run's
// model decides. One line out for one line in.
#include "models/runs/run.h"
#include "tools/generate/generate.h"

using namespace masquerade;

int main(int argc, char** argv) {
    Searching searching;
    LatentWriting latents(searching);
    TargetWriting targets(searching);
    InsertionWriting insertion(searching);
    int average = 1;
    return run_program(
        argc, argv, "generate",
        "Writes by a run: univae samples, or writes lines of standard input again; unilm, seq2seq and insertion "
        "write a target for every line of standard input.",
        [&](Options& app) {
            app.input("run", searching.folder, "RUN", "run folder, or one of its steps").required();
            app.number("--average", average, 1, 1000000, "the mean weights of the last N checkpoints");
            searching.declare(app);
            latents.declare(app);
            targets.declare(app);
            insertion.declare(app);
        },
        [&](const Common& common) {
            const ModelKind& kind = model_of_run(searching.folder);
            const std::unique_ptr<Run> run = kind.load(searching.folder, false, common.device);
            if (average > 1) run->average_checkpoints(average);
            if (UniVaeRun* from = run->latents()) {
                refuse_options(targets.own, searching.folder, kind.name);
                refuse_options(insertion.own, searching.folder, kind.name);
                latents.generate(*from, common);
            } else if (const TargetRun* writer = run->targets()) {
                refuse_options(latents.own, searching.folder, kind.name);
                refuse_options(writer->inserts() ? targets.own : insertion.own, searching.folder, kind.name);
                if (writer->inserts())
                    insertion.generate(*writer->inserts());
                else
                    targets.generate(*writer, common);
            } else {
                throw BadUsage(text(searching.folder, " is a run of ", kind.name, ", which does not write"));
            }
        },
        Work::models);
}
