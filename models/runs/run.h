// SPDX-License-Identifier: MIT
// A model with its tokenizer, fresh or from a run folder (or a step folder in it): what all families have in common,
// and the table of families.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/training_text.h"
#include "engine/io/config.h"
#include "engine/io/checkpoint.h"
#include "engine/io/run_folder.h"
#include "engine/train/trainer.h"
#include "models/nets/backbone.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

struct Measures;
struct Measuring;
struct Writing;
class RunWriter;

// The sizes of a model's stacks.
struct Stacks {
    BackboneOptions first;  // the only stack, or the encoder
    struct Decoder {
        int layers;
        bool rotary_cross;
    };
    std::optional<Decoder> decoder = {};  // of two stacks
};

// The most tokens of a line that are read, and the setting that says so; null: no line is read.
struct LineLimit {
    const char* setting = nullptr;
    int tokens = 0;
};

struct RunSettings {
    int vocabulary = 4000;  // tokens wanted of a vocabulary that is learned
    bool cased = false;
    bool keep_tokens = false;      // of the vocabulary of --init
    DType precision = DType::f32;  // storage of activations and matrices in training; masters are f32
    int batch_tokens = 360;
    std::string mask;  // in words, in place of those of the family or the objective; empty: none
    PairOptions made;  // the task that makes its pairs, in place of a text
    TrainOptions train;

    virtual ~RunSettings() = default;
    virtual const char* family() const = 0;                         // a name of model_kinds()
    virtual const char* architecture() const = 0;                   // the same in Hugging Face's style
    virtual void declare(Config& config) = 0;                       // every key; the settings must outlive the Config
    virtual TextKind wants(TextKind usual) const { return usual; }  // what is read of a text, where settings change it
    virtual std::vector<std::string> words() const { return {}; }   // the vocabulary; empty: it is learned from text
    virtual LineLimit source_limit() const { return {}; }
    virtual LineLimit target_limit() const { return {}; }  // of the targets of pairs
    // For a start with weights that exist: makes the sizes those of other stacks (of one stack a decoder has as many
    // layers), and what is read those of another run.
    virtual void adopt(const Stacks& stacks) = 0;
    void adopt_reading(RunSettings& theirs);
    // The settings that say how text is read, the first of which only runs that read alike have.
    virtual std::vector<const char*> reading() const { return {}; }

    // The settings of a stack: those of every model, and those that are otherwise in checkpoints from elsewhere alone.
    static void declare_backbone(Config& config, BackboneOptions& backbone);
    static void declare_foreign(Config& config, BackboneOptions& backbone);

  protected:
    void declare_mask(Config& config);
    void declare_tokenizer(Config& config);
    void declare_training(Config& config);
};

class Run {
  public:
    virtual ~Run() = default;

    virtual const RunSettings& common() const = 0;
    virtual RunSettings& settings_to_change() = 0;  // for a resumed run: the numbers of its optimiser
    virtual Stacks stacks() const = 0;
    virtual std::unique_ptr<Task> task(const TrainingText& text) = 0;
    // Adds what the run itself reads, beside a text, to what run.json says of that text.
    virtual void complete(TextOrigin& /*origin*/) const {}
    // A vector a line, for classifiers to read: the means of the latents, or the mean of a stack's last states. None:
    // it has none.
    virtual std::vector<std::vector<double>> features(const std::vector<std::string>& /*lines*/) const { return {}; }
    // Measures the run on text that it was not trained on (models/runs/measures.h).
    virtual Measures measures(const Measuring& how) = 0;
    // Writes lines or samples (models/runs/writer.h). BadUsage where it does not write.
    virtual std::unique_ptr<RunWriter> writer(const Writing& how);
    // Fits a prior to the latents of the sentences that it was trained on, into its step folder: what was made.
    // BadInput of a run without latents.
    virtual std::string fit_prior(const TrainingText& text);
    // The stack that BERT's and RoFormer's files can hold; null of two stacks.
    virtual const Backbone* bert() const { return nullptr; }
    // config.json of a checkpoint: the settings, and the sizes under the names Hugging Face gives them.
    void save_config(const std::string& folder);
    // The weights and records of a checkpoint, into a model that is there, and the tokenizer of the run.
    void load_checkpoint(const RunFolder& folder, std::int64_t at_step, const TensorFile& weights);
    // The weights become the mean of those of the last `count` checkpoints, the loaded one the last. BadUsage where
    // there are fewer.
    void average_checkpoints(int count);
    // vocab.txt, and tokenizer.json if the settings do not say all of the tokenizer: one that --init brought.
    void save_tokenizer(const RunFolder& folder) const;
    // The tokenizer and run.json of a new run, with what ties them to each other and to the checkpoints to come.
    void start(const RunFolder& folder, nlohmann::json record);
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
    bool averaged = false;    // its weights are the mean of several checkpoints
    std::string run_json;     // of a loaded run; empty where there is none
    std::string salt;         // a name of the run, for its checkpoints; empty: an old run

  protected:
    Run(const RunSettings& settings, Vocabulary vocabulary, DType storage, Device device);
    // A checkpoint was loaded, and this is its run.json.
    virtual void loaded(const nlohmann::json& /*record*/) {}
};

// vocab.txt of a run; BadInput if it or tokenizer.json has changed since the run was started.
Vocabulary vocabulary_of(const RunFolder& folder);
std::string hash_text(const std::string& bytes);  // 16 digits, as run.json keeps it

// config.json of a checkpoint: its settings. BadInput where it is of another family than they.
void read_settings(const RunFolder& folder, std::int64_t step, RunSettings& settings);

// A family, as the programs know it.
struct ModelKind {
    const char *name, *what;
    TextKind reads;
    std::vector<std::string> objectives;  // what it can be trained to do, where there is a choice
    // The options of ./generate and ./evaluate that are of this family.
    enum Options : unsigned { no_options = 0, of_latents = 1, of_search = 2, of_insertion = 4 };
    Options options;
    std::unique_ptr<RunSettings> (*settings)();
    std::unique_ptr<Run> (*fresh)(const RunSettings& settings, Vocabulary vocabulary, DType storage, Device device);
    std::unique_ptr<Run> (*load)(const std::string& path, bool to_train, Device device);
};
const std::vector<ModelKind>& model_kinds();
// The family of this name, else the first with an objective of this name. BadUsage, with the names there are.
const ModelKind& find_model(const std::string& name);
const ModelKind& model_of_run(const std::string& path);  // BadInput where that is no run

}  // namespace masquerade
