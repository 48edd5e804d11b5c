// SPDX-License-Identifier: MIT
// The commands of ./inspect.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "data/training_text.h"
#include "engine/tensor/device.h"
#include "tools/plot/plot.h"

namespace masquerade {

class Run;

// ./inspect program: runs one training step of a small model, and prints the tape or the time of each op. Each path
// that is not empty requests an output:
//   dump      every value and gradient, into this folder; not with `timeline` or `time`, as writing takes time
//   graph     the ops as a graph, drawn by Graphviz
//   memory    the blocks of memory over the step, as a picture
//   timeline  when each op ran, as a trace for Chrome or Perfetto
struct ProgramSettings {
    Strings words;  // a model and its settings, MODEL KEY=VALUE ...; each word is optional
    std::string dump, graph, memory, timeline;
    bool time = false;
};
void print_program(const ProgramSettings& settings, std::uint64_t seed);

// ./inspect gradients. check_ops() prints a line for every tensor of the ops whose names begin with one of `names`. If
// `names` is empty, it prints these lines for all ops. check_model() prints a line for every parameter of a small
// model, which `words` describe as in ProgramSettings. If a gradient is wrong, both functions throw after they have
// printed everything.
void check_ops(const Strings& names);
void check_model(const Strings& words, std::uint64_t seed);

// ./inspect op: runs an op of ops.h in double, on the CPU, and prints what it writes. Each word is NAME=VALUE: a tensor
// "x=1,2/3,4" with its rows, a list of integers, a number, or a name such as kind=tanh. If a gradient such as dy is
// among the words, the backward runs, too. Dropout draws its random numbers from `seed`. Throws BadUsage if a word is
// missing, if the op has no use for it, or if a number that must be whole is not.
void run_op(const std::string& op, const Strings& words, std::uint64_t seed);

// ./inspect plot: draws the numbers in the logs of runs.
struct PlotSettings {
    Strings runs, numbers;  // numbers: keys of log.jsonl; empty: those of is_of_model(), but norm
    std::string x = "step", out = "curves.svg";
};
void plot_runs(const PlotSettings& settings);
std::string name_of_folder(const std::string& path);  // last name in the absolute path: "a" for "runs/a/"
using Curves = std::map<std::string, Points>;         // name of a number in the log -> its points (x, y)
// Returns the curves of all numbers in the log.jsonl at `path`, over the number `x`, such as "step". For a line that
// has a step but no x, as a held-out line has no "tokens", x is interpolated from the steps of the lines that have it.
Curves curves_of(const std::string& path, const std::string& x);
// Whether a number of log.jsonl says something about the model, and not only about the progress, the speed or the
// memory of the training.
bool is_of_model(const std::string& name);

// ./inspect attention RUN: a page with the attention probabilities of every layer and head for one line of text.
struct AttentionPageSettings {
    // text: a sentence, or source<TAB>target; if empty, first_line() of the run's text is drawn
    std::string run, text, out = "attention.html";
};
void draw_attention(const AttentionPageSettings& settings);
// Returns pictures of the attention for a text of one line: for each attention op, the mean of its heads and, if
// `heads` is true, every head. The run must be on the CPU. Returns "" if no attention op of the run has probabilities.
std::string attention_pictures(Run& run, const TrainingText& text, bool heads);
// Returns the section of an HTML page that contains the result of attention_pictures().
std::string attention_section(const std::string& pictures);

// ./inspect report: writes a page about a run.
struct ReportSettings {
    // data: for a univae with latents that is not conditional: a file of sentences to use instead of the held-out text;
    // a line may have a label after a tab
    std::string run, data, out = "report.html";
    int limit = 400;
};
void write_report(const ReportSettings& settings, std::uint64_t seed, Device device);

// ./inspect checkpoint: lists a checkpoint, saves it for Hugging Face, or writes logits.
struct CheckpointSettings {
    std::string path;  // a safetensors file, a run folder, the folder of one step of a run, or a Hugging Face folder
    // save: a new folder for the model; tokens: the tokens to keep (see --tokens); logits: a file for the logits. Each
    // is "" if it is not requested. For all three, `path` must be a Hugging Face folder. Exception: if only `save` is
    // requested, `path` can also be a unilm or univae run.
    std::string save, tokens, logits;
};

// Lists the tensors of the checkpoint, or does what the settings request. If a Hugging Face folder has no
// masked-language-model head, `save` adds a head that is initialised at random from `seed`, and a request for logits
// throws BadInput.
void inspect_checkpoint(const CheckpointSettings& settings, std::uint64_t seed);

}  // namespace masquerade
