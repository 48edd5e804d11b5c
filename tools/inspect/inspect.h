// SPDX-License-Identifier: MIT
// The commands of ./inspect.
#pragma once
#include <fmt/format.h>

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

// ./inspect program: runs one step of a small model, and prints the tape or the time of each op. Writes what is
// requested:
//   dump      every value and gradient, into this folder
//   graph     the tape as a graph
//   memory    the blocks of memory over the step, as a picture
//   timeline  when each op ran, as a trace for Chrome or Perfetto
struct ProgramSettings {
    std::vector<std::string> words;
    std::string dump, graph, memory, timeline;
    bool time = false;
};
void print_program(const ProgramSettings& settings, std::uint64_t seed);

// ./inspect gradients. check_ops() prints a line for every tensor of the ops whose names begin with one of `names`; if
// `names` is empty, of all ops. check_model() prints a line for every parameter of a small model. If a gradient is
// wrong, both functions throw after they have printed everything.
void check_ops(const std::vector<std::string>& names);
void check_model(const std::vector<std::string>& words, std::uint64_t seed);

// ./inspect plot
struct PlotSettings {
    std::vector<std::string> runs, numbers;  // numbers: keys of log.jsonl; empty: all except counters and norm
    std::string x = "step", out = "curves.svg";
};
void plot_runs(const PlotSettings& settings);
std::string name_of_folder(const std::string& path);  // its last name, also of "." and "runs/a/"
using Curves = std::map<std::string, std::vector<std::pair<double, double>>>;  // by the name of the number
// The curves of a log.jsonl over the number `x`.
Curves curves_of(const std::string& path, const std::string& x);

// ./inspect attention RUN: a page with the attention probabilities of every layer and head for one line of text.
struct AttentionPageSettings {
    // text: source, or source<TAB>target; empty: the first line that the run held out
    std::string run, text, out = "attention.html";
};
void draw_attention(const AttentionPageSettings& settings);
// Returns the pictures for a text of one line. For each attention: the mean of its heads and, if `heads` is true, every
// head. The run must be on the CPU. Returns "" if no attention of the run has probabilities.
std::string attention_pictures(Run& run, const TrainingText& text, bool heads);
// Returns a section of a page with these pictures.
std::string attention_section(const std::string& pictures);
// Returns the first held-out line or, if there is none, the first training line. The text is empty if the run generates
// its examples.
TrainingText first_line(const TrainingText& text);

// ./inspect report: writes a page about a run.
struct ReportSettings {
    // data: a file to use instead of the held-out text; a line may have a label after a tab
    std::string run, data, out = "report.html";
    int limit = 400;
};
void write_report(const ReportSettings& settings, std::uint64_t seed, Device device);

// ./inspect checkpoint
struct CheckpointSettings {
    std::string path;                  // a file, a run or step folder, or a Hugging Face folder
    std::string save, tokens, logits;  // only for Hugging Face folders, save also for some runs; "": not requested
};

// The columns of a list of tensors, of t.element and t.shape; what is known of a tensor that cannot be read.
template <class T>
std::string type_and_shape(const T& t) {
    return t.unreadable.empty() ? fmt::format("{:6}{}", name_of(t.element), text(t.shape)) : t.unreadable;
}

// Lists the tensors of the checkpoint, or does what is requested. `seed` initialises a head that the checkpoint lacks.
void inspect_checkpoint(const CheckpointSettings& settings, std::uint64_t seed);

// Writes a model as a Hugging Face folder. If writing fails, the folder has none of the files.
void save_whole(const std::string& folder, const Backbone& backbone, const Parameters& parameters,
                const WordPiece& tokenizer);

// is_hugging_face(): whether the path is a Hugging Face folder. inspect_hugging_face(): inspect_checkpoint() for such a
// folder.
bool is_hugging_face(const std::string& path);
void inspect_hugging_face(const CheckpointSettings& settings, std::uint64_t seed);

}  // namespace masquerade
