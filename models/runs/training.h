// SPDX-License-Identifier: MIT
// A training, as ./train and programs of your own start it: settings, a text and, if there are any, weights become a
// run that trains and keeps its checkpoints in a folder.
//
//   NewTraining wanted;
//   wanted.words = {"univae", "layers=4"};
//   wanted.data = "sentences.txt";
//   Training training(wanted);
//   training.options.steps = 1000;
//   training.trainer().run([] { return false; });
#pragma once
#include <nlohmann/json.hpp>
#include <optional>

#include "models/runs/run.h"

namespace masquerade {

// A new run. A text or a file that is not named is found as ./train finds it.
struct NewTraining {
    std::vector<std::string> words;  // the family or one of its objectives, then settings as key=value
    std::string config;              // a file of settings; those of `words` go over it
    std::string data, held_out;      // texts
    std::string vocabulary;          // vocab.txt, tokenizer.json or their folder; none: it is learned from the text
    std::string initial;             // the folder whose weights and vocabulary it starts with
    std::string out;                 // the run folder; none: the next one in runs/
    Device device = Device::cpu;
};

// Errors are thrown before anything is written: BadUsage for words and settings, BadInput for what is read.
class Training {
  public:
    explicit Training(const NewTraining& wanted);
    // A run that goes on; `changes`: settings of its optimiser and its checkpoints, as key=value.
    Training(const std::string& run_folder, const std::vector<std::string>& changes, Device device = Device::cpu);
    Training(const Training&) = delete;
    Training& operator=(const Training&) = delete;

    // Made by the first call, from the options as they are then. The first step of a new run makes its folder.
    Trainer& trainer();
    bool resumed() const { return !run->run_json.empty(); }

    const ModelKind* kind = nullptr;
    std::unique_ptr<Run> run;
    TrainingText text;
    RunFolder folder;  // of a new run: none before its first step
    std::unique_ptr<Task> task;
    TrainOptions options;            // `steps` and `minutes` say where it stops
    std::string initial, was_given;  // the folder it started with, and which weights it took; empty: none

  private:
    nlohmann::json record_;  // of a new run: for run.json; of a resumed one: what is added there
    std::string out_;
    std::optional<Trainer> trainer_;
};

// The settings that a new run begins with. bf16 where the device multiplies it: there it is the faster, and trains as
// well.
std::unique_ptr<RunSettings> default_settings(const ModelKind& kind, Device device);
// The family that the first word names: itself, or one of its objectives. If the first word is a setting: the first
// family.
const ModelKind& kind_of(const std::vector<std::string>& words);
void apply_words(const ModelKind& kind, const std::vector<std::string>& words, Config& config);
Vocabulary learn_vocabulary(const RunSettings& settings, const TrainingText& text);

}  // namespace masquerade
