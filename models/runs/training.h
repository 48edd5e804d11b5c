// SPDX-License-Identifier: MIT
// Training, for ./train and for your own programs: creates a run from settings, a text and optional weights, trains it,
// and stores its checkpoints in a run folder.
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

// The options of a new run. An empty path has the same meaning as in ./train.
struct NewTraining {
    std::vector<std::string> words;  // the family or one of its objectives, then settings as key=value
    std::string config;              // a file of settings, which `words` override
    std::string data, held_out;      // paths of the training text and the held-out text
    std::string vocabulary;          // vocab.txt, tokenizer.json or their folder; empty: learned from the text
    std::string initial;             // folder of the weights and vocabulary to start with; empty: none
    std::string out;                 // the run folder; empty: the next one in runs/
    Device device = Device::cpu;
};

// The constructors throw errors before anything is written: BadUsage for words and settings, BadInput for the contents
// of files.
class Training {
  public:
    explicit Training(const NewTraining& wanted);
    // Resumes a run. `changes`: new values of settings of the optimiser and of checkpoints, as key=value.
    Training(const std::string& run_folder, const std::vector<std::string>& changes, Device device = Device::cpu);
    Training(const Training&) = delete;
    Training& operator=(const Training&) = delete;

    // The first call creates the trainer from the current options. The first step of a new run creates its folder.
    Trainer& trainer();
    bool resumed() const { return !run->run_json.empty(); }

    const Family* kind = nullptr;
    std::unique_ptr<Run> run;
    TrainingText text;
    RunFolder folder;  // empty before the first step of a new run
    std::unique_ptr<Task> task;
    TrainOptions options;            // `steps` and `minutes` limit the training
    std::string initial, was_given;  // origin of the initial weights, and which ones were copied; empty: none

  private:
    nlohmann::json record_;  // run.json of a new run, or the entry that a resumed run adds to it
    std::string out_;
    std::optional<Trainer> trainer_;
};

// Returns the default settings of a new run. The precision is bf16 if the device multiplies bf16 natively, because this
// is faster and trains equally well.
std::unique_ptr<RunSettings> default_settings(const Family& kind, Device device);
// Returns the family whose name or objective is words[0], or the first family if there are no words or words[0] is a
// setting (key=value). Throws BadUsage if no family matches.
const Family& kind_of(const std::vector<std::string>& words);
void apply_words(const Family& kind, const std::vector<std::string>& words, Config& config);
Vocabulary learn_vocabulary(const RunSettings& settings, const TrainingText& text);

}  // namespace masquerade
