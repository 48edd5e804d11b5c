// SPDX-License-Identifier: MIT
// ./generate RUN: depending on the model in the run folder and on the options, draws samples, reconstructs each line
// of standard input, or generates a target for each line. Each input line gives one output line.
#include <unistd.h>

#include <algorithm>

#include "data/text.h"
#include "tools/generate/generate.h"

using namespace masquerade;

namespace {

// Reads standard input and calls use(lines, number of the first line) for every 64 lines. Lines are counted from 0. On
// a terminal, calls use() for every single line, so that each line is answered at once. The program never calls
// stop_requested(), so Ctrl-C ends it at once, with status 130, even while it waits for a line.
template <class Use>
void each_batch_of_lines(Use use) {
    LineReader reader(std::cin, "standard input");
    const std::size_t together = isatty(STDIN_FILENO) ? 1 : 64;
    std::uint32_t first = 0;
    std::vector<std::string> lines;
    std::string line;
    while (reader.next(line)) {
        lines.push_back(line);
        if (lines.size() < together) continue;
        use(lines, first);
        first += std::uint32_t(lines.size());
        lines.clear();
    }
    if (!lines.empty()) use(lines, first);
    reader.finish();
}

}  // namespace

int main(int argc, char** argv) {
    GenerateOptions options;
    Writing& how = options.writing;
    int average = 0;
    return run_program(
        argc, argv, "generate",
        "Generates text with a run: univae samples, or reconstructs lines of standard input; unilm, seq2seq and "
        "insertion write a target for every line of standard input.",
        [&](Options& app) {
            app.input("run", how.run, "RUN", "run folder, or one of its steps").required();
            app.number("--average", average, 1, 1000000,
                       "use the mean weights of the last N checkpoints; 1: those of the last one, without ema");
            options.declare(app);
        },
        [&](const Common& common) {
            const Family& kind = family_of_run(how.run);
            const std::unique_ptr<Run> run = kind.load(how.run, false, common.device);
            if (average > 0) run->average_checkpoints(average);
            options.expect_only_of(kind);
            how.seed = common.seed;
            how.has_maximum = options.maximum.given();
            const bool compares = !how.nearest.empty() || !how.vectors.empty();
            const std::unique_ptr<RunWriter> writer = compares ? neighbour_writer(*run, how) : run->writer(how);
            const auto write = [&](std::vector<std::string> lines, std::uint32_t first) {
                write_out(writer->write(std::move(lines), first));
                flush_out();
            };
            const int count = writer->samples();
            for (int first = 0; first < count; first += 64)
                write(std::vector<std::string>(std::size_t(std::min(64, count - first))), std::uint32_t(first));
            if (count == 0) each_batch_of_lines(write);
            writer->finish();
        },
        Work::models);
}
