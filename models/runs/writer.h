// SPDX-License-Identifier: MIT
// What ./generate asks of a run, whatever its family: lines for lines, or samples.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/runs/measures.h"
#include "models/runs/run.h"

namespace masquerade {

// How text is searched for, by whatever model: greedy, beams, draws, and what may be written.
struct Searching {
    std::string run;  // its name, for messages
    std::uint64_t seed = 1;
    int count = 0;                      // samples; 0: not asked for
    std::optional<double> temperature;  // 0: greedy
    SearchOptions search;
    std::vector<std::string> forbidden;
    bool scores = false;
    bool has_maximum = false;  // search.maximum was asked for

    // The options of a search by this run; BadUsage if options exclude each other. `count_draws`: `count` asks for
    // draws.
    SearchOptions options_for(const Run& run, bool count_draws) const;
    // The hypotheses of one source, with tabs between; their scores if they were asked for.
    std::string line_of(const Run& run, const std::vector<Hypothesis>& hypotheses) const;

  private:
    void expect_agreement(bool draws) const;
};

struct Writing : Searching {
    // For runs with latents: samples from the prior, or lines written again from their latents, which may be changed.
    SampleOptions sampling;
    std::string resample, swap;
    int points = 5, each = 1, length = 0;
    bool reconstruct = false, interpolate = false;
    // For runs that write targets: lines are endings.
    bool backward = false;
    // For runs that insert: lines have a canvas, and rounds are shown. The other options of a canvas are in `search`.
    bool from_canvas = false, show_rounds = false;

    bool rewrites() const { return reconstruct || interpolate || !resample.empty() || !swap.empty(); }
};

class RunWriter {
  public:
    virtual ~RunWriter() = default;
    virtual int samples() const { return 0; }  // to be written, of lines without text; 0: it reads lines
    // The results of these lines, the first of which has this number: each ends with '\n'.
    virtual std::string write(std::vector<std::string> lines, std::uint32_t first) = 0;
};

}  // namespace masquerade
