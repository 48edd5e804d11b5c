// SPDX-License-Identifier: MIT
// A run: a model with its settings and tokenizer, either new or loaded from a run folder or one of its step folders.
// This header has what all families of models share, and the table of families.
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
    std::optional<Decoder> decoder = {};  // empty if there is only one stack
};

// The maximum number of tokens that are read of a line, and the name of its setting. The name is null if no lines are
// read.
struct LineLimit {
    const char* setting = nullptr;
    int tokens = 0;
};

struct RunSettings {
    int vocabulary = 4000;  // size of a learned vocabulary
    bool cased = false;
    bool keep_tokens = false;      // with --init: keep only those tokens of the old vocabulary that the text has
    DType precision = DType::f32;  // storage of activations and matrices in training; master weights are f32
    int batch_tokens = 360;
    std::string mask;  // masks in words that replace those of the family or objective; empty: none
    PairOptions made;  // the task that generates pairs; used instead of a text
    TrainOptions train;

    virtual ~RunSettings() = default;
    virtual const char* family() const = 0;        // a name of families()
    virtual const char* architecture() const = 0;  // the name of the model in config.json
    virtual void declare(Config& config) = 0;      // adds all keys; the settings must outlive the Config
    virtual TextKind wants(TextKind usual) const { return usual; }  // the kind of text that is read
    virtual std::vector<std::string> words() const { return {}; }   // the vocabulary; empty: learned from the text
    virtual LineLimit source_limit() const { return {}; }
    virtual LineLimit target_limit() const { return {}; }  // the same for targets of pairs
    // For a start with existing weights: adopt() sets the sizes to those of the weights' stacks (a single stack becomes
    // encoder and decoder of equal depth). adopt_reading() copies the settings that define how text is read.
    virtual void adopt(const Stacks& stacks) = 0;
    void adopt_reading(RunSettings& theirs);
    // The names of these settings. adopt_reading() copies them only if the other run has the first one.
    virtual std::vector<const char*> reading() const { return {}; }

    // Declare the settings of a stack: those of every model; those that only vary in checkpoints from other programs.
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
    virtual RunSettings& settings_to_change() = 0;  // lets a resumed run change the settings of its optimiser
    virtual Stacks stacks() const = 0;
    virtual std::unique_ptr<Task> task(const TrainingText& text) = 0;
    // Adds to the origin, for run.json, the files that the run reads itself.
    virtual void complete(TextOrigin& /*origin*/) const {}
    // Returns one feature vector per line, for classifiers: the line's latents without noise, or its last hidden
    // states, averaged over the tokens. Empty if the family has no features.
    virtual std::vector<std::vector<double>> features(const std::vector<std::string>& /*lines*/) const { return {}; }
    // Evaluates the run on held-out text (models/runs/measures.h).
    virtual Measures measures(const Measuring& how) = 0;
    // Returns a generator of lines or samples (models/runs/writer.h). Throws BadUsage if the run cannot generate.
    virtual std::unique_ptr<RunWriter> writer(const Writing& how);
    // Fits a prior to the latents of the training sentences and saves it in the step folder. Returns a message for the
    // user. Throws BadInput if the family has no latents.
    virtual std::string fit_prior(const TrainingText& text);
    // The stack that can be saved as a Hugging Face checkpoint, or null, for example because there are two stacks.
    virtual const Backbone* bert() const { return nullptr; }
    // Writes config.json of a checkpoint: the settings, and the sizes under Hugging Face's names.
    void save_config(const std::string& folder);
    // Reads the weights of a checkpoint, and run.json and tokenizer.json (if there is one) of its run.
    void load_checkpoint(const RunFolder& folder, std::int64_t at_step, const TensorFile& weights);
    // Replaces the weights by the mean of the last `count` checkpoints up to the loaded one. Throws BadUsage if there
    // are fewer checkpoints.
    void average_checkpoints(int count);
    // Writes vocab.txt, and tokenizer.json if the settings do not fully define the tokenizer (after --init or --vocab).
    void save_tokenizer(const RunFolder& folder) const;
    // Writes the tokenizer and run.json of a new run, with the hash of the tokenizer and the salt of the checkpoints.
    void start(const RunFolder& folder, nlohmann::json record);
    // One line about the model: "6 layers, the upper 4 with a latent of 32 numbers, width 128".
    virtual std::string description() const = 0;
    // A command that shows text generated by the run in this folder; empty if the run was not trained to generate.
    virtual std::string writing_command(const std::string& folder) const = 0;

    std::string text(const std::vector<int>& tokens) const { return tokenizer.decode(tokens); }
    // Ids of those of the tokens [PAD], [UNK], [CLS], [SEP], [MASK] that the vocabulary has.
    std::vector<int> special_tokens() const;

    WordPiece tokenizer;
    Parameters parameters;
    std::int64_t step = 0;
    std::string step_folder;  // step folder of a loaded run
    bool averaged = false;    // whether the weights are the mean of several checkpoints
    std::string run_json;     // contents of run.json of a loaded run; empty for a new run
    std::string salt;         // identifies the run in its checkpoints; empty for a run of an old version

  protected:
    Run(const RunSettings& settings, Vocabulary vocabulary, DType storage, Device device);
    // Called after a checkpoint was loaded. `record`: the contents of run.json.
    virtual void loaded(const nlohmann::json& /*record*/) {}
};

// Reads vocab.txt of a run. Throws BadInput if vocab.txt or tokenizer.json has changed since the run was started.
Vocabulary vocabulary_of(const RunFolder& folder);
std::string hash_text(const std::string& bytes);  // 16 hexadecimal digits, as in run.json

// Reads the settings from config.json of a checkpoint. Throws BadInput if the checkpoint is of another family.
void read_settings(const RunFolder& folder, std::int64_t step, RunSettings& settings);

// A family of models, as the programs see it.
struct Family {
    const char *name, *what;
    TextKind reads;
    std::vector<std::string> objectives;  // the family's objectives; empty if there is no choice
    // Which options of ./generate and ./evaluate the family supports.
    enum Options : unsigned { no_options = 0, of_latents = 1, of_search = 2, of_insertion = 4 };
    Options options;
    std::unique_ptr<RunSettings> (*settings)();
    std::unique_ptr<Run> (*fresh)(const RunSettings& settings, Vocabulary vocabulary, DType storage, Device device);
    std::unique_ptr<Run> (*load)(const std::string& path, bool to_train, Device device);
};
const std::vector<Family>& families();
// Returns the family of this name or, if there is none, the first family with an objective of this name. If there is
// none either, throws BadUsage, which lists the names.
const Family& find_family(const std::string& name);
const Family& family_of_run(const std::string& path);  // throws BadInput if the path is not a run

}  // namespace masquerade
