// SPDX-License-Identifier: MIT
// Training, for ./train and for your own programs: creates a run from settings, a text and optional initial weights,
// trains it, and stores its checkpoints in a run folder.
//
//   NewTraining wanted;
//   wanted.words = {"univae", "layers=4"};
//   wanted.data = "sentences.txt";
//   Training training(wanted);
//   training.options.steps = 1000;
//   training.trainer().run([] { return false; });
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "models/runs/run.h"

namespace masquerade {

// The options of a new run. An empty string means that the option of ./train is not given.
struct NewTraining {
    Strings words;       // the family or one of its objectives, then settings as key=value
    std::string config;  // path of a settings file; settings in `words` override the file
    // data: path of the training text, or of the folder of a packed text. held_out: path of the held-out text. Empty:
    // see find_training_text().
    std::string data, held_out;
    std::string vocabulary;  // path of vocab.txt, tokenizer.json or their folder; empty: none is given
    std::string initial;     // folder of the weights and the vocabulary to start from; empty: none
    std::string out;         // path of the new run folder; empty: the next free number in the folder runs
    Device device = Device::cpu;
};

// A training run, new or resumed. The constructors write nothing. They throw BadUsage for wrong settings, and BadInput
// for wrong contents of files.
class Training {
  public:
    explicit Training(const NewTraining& wanted);
    // Resumes a run. `changes` has new values, as key=value, for settings of the learning rate, clipping and
    // checkpoints.
    Training(const std::string& run_folder, const Strings& changes, Device device = Device::cpu);
    Training(const Training&) = delete;
    Training& operator=(const Training&) = delete;

    // Sets the limits in `options`: `steps` (0: not given) and `minutes` (0: no limit; negative: not given). If neither
    // is given, a new run stops after 10 minutes, and a resumed run at the end of its schedule.
    void limit(std::int64_t steps, double minutes);
    // Returns the trainer, which the first call creates from the current `options`. After its first step, a new run
    // creates its folder, and a resumed run adds an entry to run.json.
    Trainer& trainer();
    bool resumed() const { return !run->run_json.empty(); }

    const Family* kind = nullptr;
    std::unique_ptr<Run> run;
    TrainingText text;
    RunFolder folder;  // the run folder; its path is empty before the first step of a new run
    std::unique_ptr<Task> task;
    TrainOptions options;   // may be changed before the first call of trainer()
    std::string initial;    // path of the initial weights; empty: none, or resumed
    std::string was_given;  // the result of Start::give_weights(); empty: there are no initial weights
    // For run.json, both in UTF-8; an empty one is left out. Set them before the first call of trainer(). command: the
    // command line of the user; commit: the commit of the sources of the program.
    std::string command, commit;

  private:
    std::shared_ptr<nlohmann::json> record_;  // run.json of a new run, or the entry that a resumed run adds to run.json
    std::string out_;
    std::optional<Trainer> trainer_;
};

// Returns the default settings of a new run. The precision is bf16 if the device has instructions that multiply bf16,
// because training is then faster and equally good; otherwise, it is f32.
std::unique_ptr<RunSettings> default_settings(const Family& kind, Device device);
// Returns the family whose name or objective is words[0]. If there are no words, or if words[0] is a setting
// (key=value), returns the first family. Throws BadUsage if no family matches.
const Family& kind_of(const Strings& words);
// Sets the settings in `words` (key=value). If words[0] names an objective, sets the setting `objective` to it.
void apply_words(const Family& kind, const Strings& words, Config& config);
// Returns the vocabulary of the task in `settings` or, if there is no task, a vocabulary learned from the training
// text.
Vocabulary learn_vocabulary(const RunSettings& settings, const TrainingText& text);

}  // namespace masquerade
