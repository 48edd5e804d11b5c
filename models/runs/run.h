// SPDX-License-Identifier: MIT
// A model with its tokenizer, fresh or from a run folder (or a step folder in it): what all models have in common, and
// the list of models that the programs know.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/training_text.h"
#include "engine/io/config.h"
#include "engine/io/run_folder.h"
#include "engine/train/trainer.h"
#include "models/nets/backbone.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

struct RunSettings {
    int vocabulary = 4000;  // tokens wanted of a vocabulary that is learned
    bool cased = false;
    DType precision = DType::f32;  // storage of activations and matrices in training; masters are f32
    int batch_tokens = 360;
    TrainOptions train;

    virtual ~RunSettings() = default;
    virtual void declare(Config& config) = 0;  // every key; the settings must outlive the Config

  protected:
    static void declare_backbone(Config& config, BackboneOptions& backbone);
    void declare_training(Config& config);
};

// It reads and writes in f32; to be trained on, it has the precision of its settings.
class Run {
  public:
    virtual ~Run() = default;

    virtual const RunSettings& common() const = 0;
    virtual RunSettings& settings_to_change() = 0;  // for a resumed run: the numbers of its optimiser
    // config.json of a checkpoint: the settings, and the sizes under the names Hugging Face gives them.
    virtual void save_config(const std::string& folder) const = 0;
    virtual std::unique_ptr<Task> task(const TrainingText& text) = 0;
    // vocab.txt, and tokenizer.json if the settings do not say all of the tokenizer: one that --init brought.
    void save_tokenizer(const RunFolder& folder) const;
    // For the head of a training: "6 layers, the upper 4 with a latent of 32 numbers, width 128".
    virtual std::string description() const = 0;
    // A command that shows what the run in this folder writes; empty where it was not trained to write.
    virtual std::string writing_command(const std::string& folder) const = 0;

    std::string text(const std::vector<int>& tokens) const { return tokenizer.decode(tokens); }
    // [PAD], [UNK], [CLS], [SEP], [MASK], those that there are.
    std::vector<int> special_tokens() const;

    WordPiece tokenizer;
    Parameters parameters;
    std::int64_t step = 0;
    std::string step_folder;  // of a loaded run
    std::string run_json;     // of a loaded run; empty where there is none

  protected:
    Run(const RunSettings& settings, Vocabulary vocabulary, DType storage, Device device);
    // The weights and records of a checkpoint, into a model that is there, and the tokenizer of the run.
    void load_checkpoint(const RunFolder& folder, std::int64_t at_step);
    nlohmann::json hugging_face_sizes(const BackboneOptions& backbone) const;
};

// vocab.txt of a run; BadInput if it has changed since the run was started.
Vocabulary vocabulary_of(const RunFolder& folder);
std::string hash_text(const std::string& bytes);  // 16 digits, as run.json keeps it

// config.json of a run's latest checkpoint, of this model: its settings. BadInput where it is of another.
void read_settings(const RunFolder& folder, std::int64_t step, const std::string& model,
                   RunSettings& settings);
void write_config(const std::string& folder, const nlohmann::json& config);

struct ModelKind {
    const char *name, *what;
    TextKind reads;
    std::unique_ptr<RunSettings> (*settings)();
    std::unique_ptr<Run> (*fresh)(const RunSettings& settings, Vocabulary vocabulary, DType storage,
                                  Device device);
    std::unique_ptr<Run> (*load)(const std::string& path, bool to_train, Device device);
};
const std::vector<ModelKind>& model_kinds();
const ModelKind& find_model(const std::string& name);    // BadUsage, with the names there are
const ModelKind& model_of_run(const std::string& path);  // BadInput where that is no run

}  // namespace masquerade
