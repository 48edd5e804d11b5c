// SPDX-License-Identifier: MIT
// The parts of ./generate: what every model's writing shares, and the options of each.
#pragma once
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "data/text.h"
#include "models/runs/target_run.h"
#include "tools/program.h"

namespace masquerade {

struct Choice {
    std::string run;
    SamplingOptions sampling;
    bool temperature_given = false;
    int count = 0;  // samples; 0: not asked for
};

// How text is searched for, by whatever model: greedy, beams, draws, and what may be written.
struct Searching {
    explicit Searching(const Choice& c) : choice(c) {}
    const Choice& choice;
    SearchOptions search;
    std::string length_form = "hf", stop = "heuristic";
    std::vector<std::string> forbidden;
    bool scores = false;
    const CLI::Option* maximum = nullptr;

    void declare(CLI::App& app);
    // What a search by this run is asked. BadUsage where options exclude each other. `draws`: --count alone asks for draws.
    SearchOptions options_for(const Run& run, bool draws) const;
    // The hypotheses of one source, with tabs between; their scores if they were asked for.
    std::string line_of(const Run& run, const std::vector<Hypothesis>& hypotheses) const;

  private:
    void expect_agreement(bool draws) const;
};

// Samples from the prior; or sentences written again from their latents, as they are or changed.
struct UniVaeWriting {
    explicit UniVaeWriting(const Searching& s) : choice(s.choice), searching(s) {}
    const Choice& choice;
    const Searching& searching;
    std::string resample, swap, prior;
    int points = 5, length = 0, refine = 0;
    std::optional<double> latent_temperature;
    bool reconstruct = false, interpolate = false;
    CLI::App* own = nullptr;  // its options

    void declare(CLI::App& app);
    void generate(UniVaeRun& run, const Common& common) const;
};

// Targets of the sources on standard input, by search.
struct TargetWriting {
    explicit TargetWriting(const Searching& s) : choice(s.choice), searching(s) {}
    const Choice& choice;
    const Searching& searching;
    bool backward = false;
    CLI::App* own = nullptr;

    void declare(CLI::App& app);
    void generate(const TargetRun& run, const Common& common) const;

  private:
    // Whether the lines are endings: asked for, or all that the run has learned.
    bool goes_backward(const TargetRun& run) const;
    void write_for(const TargetRun& run, const std::vector<std::string>& lines, std::uint32_t first,
                   const SearchOptions& options, std::uint64_t seed) const;
};

// Standard input, 64 lines at a time with the number of the first: a person at a terminal gets an answer to every line.
// Nothing here asks whether to stop: so Ctrl-C ends the program at once, with status 130, also where it waits for a line.
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
