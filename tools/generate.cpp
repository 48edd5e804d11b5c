// SPDX-License-Identifier: MIT
// ./generate RUN: depending on the model in the run folder and on the options, draws samples, reconstructs each line
// of standard input, or generates a target for each line. Each input line gives one output line.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "data/text.h"
#include "engine/base/processes.h"
#include "tools/generate/options.h"
#include "tools/run_options.h"

using namespace masquerade;

namespace {

// Reads standard input (of process 0) and calls use(lines, number of the first line), in all processes, for as many
// lines as they write at a time. Lines are counted from 0. On a terminal, calls use() for every single line, so that
// each line is answered at once. The program never calls stop_requested(), so Ctrl-C ends the program at once, with
// status 130, even while it waits for a line.
template <class Use>
void each_batch_of_lines(Use use) {
    LineReader reader(std::cin, "standard input");
    const std::size_t together = isatty(STDIN_FILENO) ? 1 : lines_together * std::size_t(processes().count());
    for (std::uint32_t first = 0;;) {
        Strings lines;
        if (first_process())
            for (std::string line; lines.size() < together && reader.next(line);) lines.push_back(line);
        // The first process waits for its standard input as long as it takes.
        const double patience = std::exchange(processes().patience, 1e18);
        lines = gather_lists(lines);
        processes().patience = patience;
        if (lines.empty()) break;
        use(lines, first);
        first += std::uint32_t(lines.size());
    }
    if (first_process()) reader.finish();
}

}  // namespace

int main(int argc, char** argv) {
    GenerateOptions options;
    std::string folder;
    RunWeights weights;
    return run_program(
        argc, argv, "generate",
        "Generates text with a run. The model of the run decides what is written: univae (a VAE) draws samples, or "
        "reconstructs lines of standard input; unilm, seq2seq and insertion write a target for every line of standard "
        "input; flow (a normalising flow) writes vectors. Words such as ema= and conditional=true are settings of the "
        "training (./train).",
        [&](Options& app) {
            app.input("run", folder, "RUN", "run folder, or one of its checkpoints").required();
            weights.declare(app);
            options.declare(app);
            const auto help = [&, app](bool all) {
                return options.help(app, folder.empty() ? Strings{} : Strings{folder}, all);
            };
            app.on_help(help, all_of_runs);
        },
        [&](const Common& common) {
            const Family& kind = family_of_run(folder);
            const auto run = weights.load(folder, common.device);
            options.how.run = folder, options.how.seed = common.seed;
            const RunWriter writer = options.writer(*run, kind);
            if (!alone() && !options.how.vectors.empty())
                throw BadUsage("--vectors is work for one process: leave out mpirun or srun");
            const auto write = [&](const Strings& lines, std::uint32_t first) {
                const auto [begin, end] = own_items(lines.size(), lines_together);
                std::string written;
                if (const ByItself alone; begin < end)
                    written = writer.write({lines.begin() + begin, lines.begin() + end}, first + std::uint32_t(begin));
                for (const std::string& of_process : gather_messages(written)) write_out(of_process);
                flush_out();
            };
            const int count = writer.samples, together = int(lines_together) * processes().count();
            for (int first = 0; first < count; first += together)
                write(Strings(std::size_t(std::min(together, count - first))), std::uint32_t(first));
            if (count == 0) each_batch_of_lines(write);
            writer.finish();
        },
        Work::models, Together::yes);
}
