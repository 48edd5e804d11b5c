// SPDX-License-Identifier: MIT
// What ./evaluate asks of a run, whatever its family, and the table that comes of it.
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
    std::vector<double> beside = {};    // the same of what it is compared with
    std::vector<double> interval = {};  // low, high: of 95 %, or of all draws; or nothing
};

struct Measures {
    std::vector<std::string> heads, keys;  // above the values and what stands beside them; in JSON, of the latter
    std::vector<Measure> rows;
};

// How samples are drawn from latents.
struct SampleOptions {
    std::string prior;  // as UniVaeRun::choose_prior takes them
    std::optional<double> latent_temperature;
    int refine = 0;
};

struct Measuring {
    std::string run, data;  // names: of the run, and of other text than what it held out
    int limit = 1000;       // lines, or examples
    std::uint64_t seed = 1;
    Device device = Device::cpu;
    // For runs with latents.
    SampleOptions sampling;
    int importance = 20, samples = 1000;
    bool swap = false;
    std::string judge;
    // For runs that write targets.
    SearchOptions search;
    bool characters = false;
    std::string outputs;
};

// Lines as a run with this tokenizer reads them, to be compared with what it writes.
std::vector<std::string> as_read(std::vector<std::string> lines, const WordPiece& tokenizer);

}  // namespace masquerade
