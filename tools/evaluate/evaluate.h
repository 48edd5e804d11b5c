// SPDX-License-Identifier: MIT
// The parts of ./evaluate: its table, and what is measured of a run with latents and of one that writes targets.
#pragma once
#include <string>
#include <vector>

#include "models/runs/target_run.h"
#include "tools/program.h"
#include "tools/sample_options.h"

namespace masquerade {

struct Row {
    std::string key;
    double value;
    std::string unit, meaning;
    std::vector<double> beside = {};    // the same of what it is compared with
    std::vector<double> interval = {};  // low, high: of 95 %, or of all draws; or nothing
};

struct Table {
    std::vector<std::string> heads, keys;  // above the values and what stands beside them; in JSON, of the latter
    std::vector<Row> rows;
};

// Lines as a run with this tokenizer reads them, to be compared with what it writes.
std::vector<std::string> as_read(std::vector<std::string> lines, const WordPiece& tokenizer);

// The text that is measured: the held-out text of a run, or other text.
struct Measured {
    std::string run, data;
    int limit = 1000;
};

struct LatentMeasuring {
    explicit LatentMeasuring(const Measured& c) : choice(c) {}
    const Measured& choice;
    SampleOptions sampling;
    int importance = 20, samples = 1000;
    bool swap = false;
    std::string judge;
    Options own;  // its options

    void declare(Options& app);
    Table measure(UniVaeRun& run, const Common& common) const;
};

struct TargetMeasuring {
    explicit TargetMeasuring(const Measured& c) : choice(c) {}
    const Measured& choice;
    SearchOptions search;
    bool characters = false;
    std::string outputs;
    Options own, of_insertion;

    void declare(Options& app);
    Table measure(const TargetRun& run, const Common& common) const;
};

}  // namespace masquerade
