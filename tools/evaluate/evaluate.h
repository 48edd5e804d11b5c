// SPDX-License-Identifier: MIT
// The parts of ./evaluate: the rows of its table, and what is measured of each model.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "models/runs/target_run.h"
#include "models/writing/search.h"
#include "tools/program.h"

namespace masquerade {

struct Row {
    std::string key, unit, meaning;
    double value;
    std::vector<double> beside = {};  // the same of what it is compared with
};

struct Measured {
    std::string run, data;
    int limit = 1000;
};

struct UniVaeMeasuring {
    explicit UniVaeMeasuring(const Measured& c) : choice(c) {}
    const Measured& choice;
    std::string prior;
    int importance = 20, samples = 1000, refine = 0;
    std::optional<double> latent_temperature;
    CLI::App* own = nullptr;  // its options

    void declare(CLI::App& app);
    std::vector<Row> measure(UniVaeRun& run, const Common& common) const;
};

struct TargetMeasuring {
    explicit TargetMeasuring(const Measured& c) : choice(c) {}
    const Measured& choice;
    SearchOptions search;
    bool characters = false;
    std::string outputs;
    CLI::App* own = nullptr;

    void declare(CLI::App& app);
    std::vector<Row> measure(const TargetRun& run, const Common& common) const;
};

}  // namespace masquerade
