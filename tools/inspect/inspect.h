// SPDX-License-Identifier: MIT
// The parts of ./inspect.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/tensor/device.h"

namespace masquerade {

class Backbone;
class Parameters;
class Vocabulary;

// ./inspect program: one step of a small model. What the tape recorded, or the time that each op took; every value and
// gradient into the folder `dump` unless it is empty.
void print_program(const std::vector<std::string>& words, const std::string& dump, bool time, std::uint64_t seed);

// ./inspect gradients: a line for every tensor of every op whose name begins with one of `names` (none: of every op), or
// for every parameter of a small model. Both throw where a gradient is wrong, after all is printed.
void check_ops(const std::vector<std::string>& names);
void check_model(const std::vector<std::string>& words, std::uint64_t seed);

// ./inspect plot
struct PlotSettings {
    std::vector<std::string> runs, numbers;  // folders; names in log.jsonl, none: all that training measures
    std::string x = "step", out = "curves.svg";
};
void plot_runs(const PlotSettings& settings);
using Curves = std::map<std::string, std::vector<std::pair<double, double>>>;  // of a log.jsonl, by the number's name
Curves curves_of(const std::string& path, const std::string& x);

// ./inspect report: one page on a run.
struct ReportSettings {
    std::string run, data, out = "report.html";  // data: other text than what was held out, with labels behind tabs or without
    int limit = 400;
};
void write_report(const ReportSettings& settings, std::uint64_t seed, Device device);

// ./inspect checkpoint
struct CheckpointSettings {
    std::string path;                  // a file, or a folder of ours or of Hugging Face's
    std::string save, tokens, logits;  // of Hugging Face's alone; empty: not asked for
};

// Lists what is in it, or does what is asked for. The seed is of a head that the checkpoint lacks.
void inspect_checkpoint(const CheckpointSettings& settings, std::uint64_t seed);

// A model in Hugging Face's form: all its files, or none.
void save_whole(const std::string& folder, const Backbone& backbone, const Parameters& parameters,
                const Vocabulary& vocabulary, bool lower);

// The part that knows Hugging Face's folders.
bool is_hugging_face(const std::string& path);
void inspect_hugging_face(const CheckpointSettings& settings, std::uint64_t seed);

}  // namespace masquerade
