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

// ./inspect program: one step of a small model. Prints the tape, or the time of each op. Optionally writes
//   dump      every value and gradient, to this folder
//   graph     the tape as a graph
//   memory    the blocks of memory over the step, as a picture
//   timeline  when each op ran, as a trace for Chrome or Perfetto
struct ProgramSettings {
    std::vector<std::string> words;
    std::string dump, graph, memory, timeline;
    bool time = false;
};
void print_program(const ProgramSettings& settings, std::uint64_t seed);

// ./inspect gradients. check_ops() prints a line for every tensor of every op whose name begins with one of `names` (of
// all ops if `names` is empty); check_model() prints a line for every parameter of a small model. Both throw after
// printing everything if a gradient is wrong.
void check_ops(const std::vector<std::string>& names);
void check_model(const std::vector<std::string>& words, std::uint64_t seed);

// ./inspect plot
struct PlotSettings {
    std::vector<std::string> runs, numbers;  // numbers: names in log.jsonl; empty: all except counters and norm
    std::string x = "step", out = "curves.svg";
};
void plot_runs(const PlotSettings& settings);
using Curves = std::map<std::string, std::vector<std::pair<double, double>>>;  // by the name of the number
// The curves of a log.jsonl over the number `x`.
Curves curves_of(const std::string& path, const std::string& x);

// ./inspect attention RUN: a page with the attention probabilities of every layer and head for one line of text.
struct AttentionPageSettings {
    // text: source, or source<TAB>target; empty: the first line that the run held out
    std::string run, text, out = "attention.html";
};
void draw_attention(const AttentionPageSettings& settings);
// The pictures for a text of one line: for each attention the mean of its heads and, if `heads`, every head. The run
// must be on the CPU. Empty if no attention of the run has probabilities.
std::string attention_pictures(Run& run, const TrainingText& text, bool heads);
// The section of a page that shows these pictures.
std::string attention_section(const std::string& pictures);
// The first held-out line or, if there is none, the first training line. Empty for a run that generates its examples.
TrainingText first_line(const TrainingText& text);

// ./inspect report: one page on a run.
struct ReportSettings {
    // data: text to use instead of the held-out text; a line may have a label after a tab
    std::string run, data, out = "report.html";
    int limit = 400;
};
void write_report(const ReportSettings& settings, std::uint64_t seed, Device device);

// ./inspect checkpoint
struct CheckpointSettings {
    std::string path;                  // a file, a run or step folder, or a Hugging Face folder
    std::string save, tokens, logits;  // for Hugging Face folders (save: for some runs, too); empty: not requested
};

// Lists the tensors of the checkpoint, or does what is requested. `seed` initialises a head that the checkpoint lacks.
void inspect_checkpoint(const CheckpointSettings& settings, std::uint64_t seed);

// Writes a model as a Hugging Face folder: all of its files, or none.
void save_whole(const std::string& folder, const Backbone& backbone, const Parameters& parameters,
                const WordPiece& tokenizer);

// Whether the path is a Hugging Face folder; and inspect_checkpoint() for such a folder.
bool is_hugging_face(const std::string& path);
void inspect_hugging_face(const CheckpointSettings& settings, std::uint64_t seed);

}  // namespace masquerade
