// SPDX-License-Identifier: MIT
// The parts of ./generate: how text is searched, and what is written from latents or for sources.
#pragma once
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "data/text.h"
#include "models/runs/target_run.h"
#include "tools/program.h"
#include "tools/sample_options.h"

namespace masquerade {

// How text is searched for, by whatever model: greedy, beams, draws, and what may be written.
struct Searching {
    std::string folder;                 // of the run
    int count = 0;                      // samples; 0: not asked for
    std::optional<double> temperature;  // 0: greedy
    SearchOptions search;
    std::vector<std::string> forbidden;
    bool scores = false;
    Option maximum;
    Options own;  // its options

    void declare(Options& app);
    // The options of a search by this run; BadUsage if options exclude each other. `count_draws`: --count asks for
    // draws.
    SearchOptions options_for(const Run& run, bool count_draws) const;
    // The hypotheses of one source, with tabs between; their scores if they were asked for.
    std::string line_of(const Run& run, const std::vector<Hypothesis>& hypotheses) const;

  private:
    void expect_agreement(bool draws) const;
};

// Samples from the prior; or sentences written again from their latents, as they are or changed.
struct LatentWriting {
    explicit LatentWriting(const Searching& s) : searching(s) {}
    const Searching& searching;
    SampleOptions sampling;
    std::string resample, swap;
    int points = 5, each = 1, length = 0;
    bool reconstruct = false, interpolate = false;
    Options own;  // its options

    void declare(Options& app);
    bool reads() const { return reconstruct || interpolate || !resample.empty() || !swap.empty(); }
    void generate(UniVaeRun& run, const Common& common) const;
};

// Targets of the sources on standard input, by search.
struct TargetWriting {
    explicit TargetWriting(const Searching& s) : searching(s) {}
    const Searching& searching;
    bool backward = false;
    Options own;

    void declare(Options& app);
    void generate(const TargetRun& run, const Common& common) const;
};

// Targets of the sources on standard input, by insertion.
struct InsertionWriting {
    explicit InsertionWriting(const Searching& s) : searching(s) {}
    const Searching& searching;
    CanvasOptions canvas;
    bool from_canvas = false, show_rounds = false;
    Options own;

    void declare(Options& app);
    void generate(const InsertionRun& run) const;
};

// Standard input, 64 lines at a time with the number of the first: a person at a terminal gets an answer to every line.
// Nothing here asks whether to stop: so Ctrl-C ends the program at once, with status 130, also where it waits for a
// line.
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

}  // namespace masquerade
