// SPDX-License-Identifier: MIT
// The parts of ./inspect.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/training_text.h"
#include "engine/tensor/device.h"

namespace masquerade {

class Backbone;
class Parameters;
class Run;
class WordPiece;

// ./inspect program: one step of a small model. What the tape recorded, or the time that each op took. Into files,
// where they are named: every value and gradient into a folder, the tape as a graph, the memory that the step has as a
// picture of blocks over time, and when each op ran as a trace that Chrome and Perfetto show.
struct ProgramSettings {
    std::vector<std::string> words;
    std::string dump, graph, memory, timeline;
    bool time = false;
};
void print_program(const ProgramSettings& settings, std::uint64_t seed);

// ./inspect gradients: a line for every tensor of every op whose name begins with one of `names` (none: of every op),
// or for every parameter of a small model. Both throw where a gradient is wrong, after all is printed.
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

// ./inspect attention RUN: a page of pictures of who reads whom in one line, in every layer and head.
struct AttentionPageSettings {
    // text: source, or source<TAB>target; empty: the first line that the run held out
    std::string run, text, out = "attention.html";
};
void draw_attention(const AttentionPageSettings& settings);
// The pictures alone, of a run on the CPU and a text of one line: means of the heads, or every head as well. Empty
// where no attention of the run keeps probabilities. Then the part of a page that has them.
std::string attention_pictures(Run& run, const TrainingText& text, bool heads);
std::string attention_section(const std::string& pictures);
// The first line that was held out, or else trained on; none of a run that makes its examples itself.
TrainingText first_line(const TrainingText& text);

// ./inspect report: one page on a run.
struct ReportSettings {
    // data: other text than what was held out, with labels behind tabs or without
    std::string run, data, out = "report.html";
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
                const WordPiece& tokenizer);

// The part that knows Hugging Face's folders.
bool is_hugging_face(const std::string& path);
void inspect_hugging_face(const CheckpointSettings& settings, std::uint64_t seed);

}  // namespace masquerade
