// SPDX-License-Identifier: MIT
// The options of ./evaluate, and the table of measures that it prints, for all families of models.
#pragma once
#include <numeric>
#include <optional>

#include "engine/base/processes.h"
#include "engine/tensor/device.h"
#include "models/writing/search.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

struct Measure {
    std::string key;
    double value;
    std::string unit, meaning;
    Numbers beside = {};    // values of this measure for further texts, such as held-out text; one per text
    Numbers interval = {};  // ends of the 95 % confidence interval, or lowest and highest of several draws; or empty
};

using MeasureRows = std::vector<Measure>;

struct Measures {
    Strings heads, keys;  // heads: headings of the columns of `value` and `beside`; keys: JSON keys of `beside`
    MeasureRows rows;
};

// How latents are drawn from a prior and decoded to samples.
struct SampleOptions {
    std::string prior;  // "fitted", "uniform", the path of a flow or empty, see UniVaeRun::choose_prior
    std::optional<double> latent_temperature;
    int refine = 0;  // how often a sample is encoded and decoded again, see UniVaeDecoder::search()
};

struct Measuring {
    // run: path of the run; data: path of the text to measure on, or empty for the held-out text of the run
    std::string run, data;
    int limit = 1000;  // maximum number of lines or examples
    std::uint64_t seed = 1;
    Device device = Device::cpu;
    // For runs with latents. importance: number of importance samples per sentence, for -log p(x). swap: whether to
    // measure texts after latents were swapped between sentences.
    SampleOptions sampling;
    int importance = 20;
    bool swap = false;
    // For runs that generate texts. samples: number of samples to generate and measure; 0: as many as the family's
    // default. judge: path of a run whose language model computes the perplexity of the samples; empty: none.
    int samples = 0;
    std::string judge;
    // For runs that generate targets. characters: whether targets are compared by characters instead of words. outputs:
    // path of a file to which sources, generated targets and references are written; empty: none.
    SearchOptions search;
    // orders: number of random orders of each text, for a bound of masked diffusion; 0: none.
    int orders = 0;
    bool characters = false;
    std::string outputs;
};

inline double sum_of(const Numbers& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }
// Returns the sum of the numbers that all processes pass.
inline double sum_over_processes(double own, int line = __builtin_LINE()) {
    return sum_of(gather_numbers({own}, line));
}

// Encodes and decodes each line. The results have the form of generated lines (for example, in spaces and case), so the
// two can be compared. Words that are not in the vocabulary do not become [UNK] (WordPiece::reading).
Strings as_read(Strings lines, const WordPiece& tokenizer);

}  // namespace masquerade
