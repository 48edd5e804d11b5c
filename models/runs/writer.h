// SPDX-License-Identifier: MIT
// The options of ./generate, and the interface by which it makes runs of all families generate, from lines or as
// samples.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/runs/measures.h"
#include "models/runs/run.h"

namespace masquerade {

// Search options for all models: greedy search, beams, sampling, and rules for the generated tokens.
struct Searching {
    std::string run;  // path of the run, for messages
    std::uint64_t seed = 1;
    int count = 0;                      // number of samples; 0: not given
    std::optional<double> temperature;  // 0: greedy
    SearchOptions search;
    std::vector<std::string> forbidden;
    bool scores = false;
    bool has_maximum = false;  // whether the user set search.maximum

    // Returns the search options for this run. Throws BadUsage if options exclude each other. count_draws: whether
    // `count` implies sampling of tokens.
    SearchOptions options_for(const Run& run, bool count_draws) const;
    // Returns the hypotheses of one source, separated by tabs, with their scores if `scores` is true.
    std::string line_of(const Run& run, const std::vector<Hypothesis>& hypotheses) const;

  private:
    void expect_agreement(bool draws) const;
};

struct Writing : Searching {
    // For runs with latents: samples from the prior, or lines that are decoded from their (possibly changed) latents.
    SampleOptions sampling;
    std::string resample, swap;
    int points = 5, each = 1, length = 0;
    bool reconstruct = false, interpolate = false;
    // For runs that generate targets: whether lines are endings.
    bool backward = false;
    // For insertion: whether input lines contain a canvas (words to start from), and whether every round is shown.
    // Further canvas options are in `search`.
    bool from_canvas = false, show_rounds = false;

    bool rewrites() const { return reconstruct || interpolate || !resample.empty() || !swap.empty(); }
};

class RunWriter {
  public:
    virtual ~RunWriter() = default;
    virtual int samples() const { return 0; }  // number of samples to generate without input lines; 0: reads lines
    // Returns the results of these lines, each ending with '\n'. `first` is the number of the first line.
    virtual std::string write(std::vector<std::string> lines, std::uint32_t first) = 0;
};

}  // namespace masquerade
