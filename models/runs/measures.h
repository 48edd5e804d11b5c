// SPDX-License-Identifier: MIT
// The options of ./evaluate and its table of measures, for all families of models.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/tensor/device.h"
#include "models/writing/search.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

struct Measure {
    std::string key;
    double value;
    std::string unit, meaning;
    std::vector<double> beside = {};    // values of what the run is compared with, in further columns
    std::vector<double> interval = {};  // low and high end of a 95 % interval, or of all draws; may be empty
};

struct Measures {
    std::vector<std::string> heads, keys;  // headings of the columns `value` and `beside`; JSON keys of `beside`
    std::vector<Measure> rows;
};

// How samples are drawn from latents.
struct SampleOptions {
    std::string prior;  // see UniVaeRun::choose_prior
    std::optional<double> latent_temperature;
    int refine = 0;
};

struct Measuring {
    // run: path of the run; data: a text to measure on, or empty for the held-out text
    std::string run, data;
    int limit = 1000;  // maximum number of lines or examples
    std::uint64_t seed = 1;
    Device device = Device::cpu;
    // For runs with latents.
    SampleOptions sampling;
    int importance = 20, samples = 1000;
    bool swap = false;
    std::string judge;
    // For runs that generate targets.
    SearchOptions search;
    bool characters = false;
    std::string outputs;
};

// Returns the lines as a run with this tokenizer reads them, so that they are comparable with the run's generated
// lines.
std::vector<std::string> as_read(std::vector<std::string> lines, const WordPiece& tokenizer);

}  // namespace masquerade
