// SPDX-License-Identifier: MIT
// A run: a model with its settings and tokenizer, either new or loaded from a run folder or one of its step folders.
// This header declares what the runs of all families of models have in common, and the table of these families.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "data/sentences.h"
#include "data/training_text.h"
#include "engine/io/config.h"
#include "engine/io/checkpoint.h"
#include "engine/io/run_folder.h"
#include "engine/train/trainer.h"
#include "models/latent/flow_steps.h"
#include "models/nets/backbone.h"
#include "models/runs/line_vectors.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

using StoredSentences = std::vector<Sentence>;  // Sentences points to them
using SharedSentences = std::shared_ptr<const SentenceList>;
struct Measures;
struct Measuring;
struct Writing;
struct RunWriter;

// The sizes of the Transformer stacks of a model.
struct Stacks {
    BackboneOptions first;  // the only stack, or the encoder
    struct Decoder {
        int layers;
        bool rotary_cross;
    };
    std::optional<Decoder> decoder = {};             // empty if there is only one stack
    bool none() const { return first.layers == 0; }  // whether the model has no Transformer stack
};

// The maximum number of tokens of a line, including special tokens; longer lines are truncated. `setting` is the name
// of the setting that has this number; null if the family reads no lines.
struct LineLimit {
    const char* setting = nullptr;
    int tokens = 0;
};

struct RunSettings {
    int vocabulary = 4000;  // size of the vocabulary, if it is learned from the training text
    bool cased = false;
    bool keep_tokens = false;      // with --init: keep only tokens that the text contains; false: keep all tokens
    DType precision = DType::f32;  // storage of activations and matrices in training; master weights are f32
    int batch_tokens = 360;
    std::string mask;  // attention masks in words (models/masks/words.h); empty: the masks of the family or objective
    PairOptions made;  // if made.any(): a task that generates training pairs, which replace a training text
    TrainOptions train;

    virtual ~RunSettings() = default;
    virtual const char* family() const = 0;  // name of the family in families()
    // Adds all settings to `config`, which stores pointers to them. The settings must therefore outlive `config`.
    virtual void declare(Config& config) = 0;
    virtual TextKind wants(TextKind usual) const { return usual; }  // kind of text to read; `usual` is Family::reads
    virtual Strings words() const { return {}; }                    // the vocabulary, if the task fixes it; else empty
    // The labels of a task. They are added as tokens to the vocabulary of --init or --vocab.
    virtual Strings answers() const { return {}; }
    // Whether the initial weights may have tokens that the task lacks. If they have such tokens, the head is
    // initialised at random.
    virtual bool takes_any_stack() const { return false; }
    virtual LineLimit source_limit() const { return {}; }
    virtual LineLimit target_limit() const { return {}; }  // limit of the targets of pairs
    // The following two functions are for training that starts from the weights of another model. adopt() sets the
    // sizes of this model to `stacks`, the sizes of the weights. If the weights have one stack and this model has two
    // stacks, encoder and decoder each get the number of layers of the one stack. adopt_reading() copies from `theirs`
    // the settings that define how text is read: `cased`, and the settings that reading() names.
    virtual void adopt(const Stacks& stacks) = 0;
    void adopt_reading(RunSettings& theirs);
    // Returns the names of the settings that adopt_reading() copies in addition to `cased`. adopt_reading() copies
    // these settings only if `theirs` has the first of them.
    virtual std::vector<const char*> reading() const { return {}; }

    // Declare the settings of a stack. declare_backbone() declares the usual settings. declare_foreign() declares
    // settings that rarely differ from their defaults, except in checkpoints of other programs.
    static void declare_backbone(Config& config, BackboneOptions& backbone);
    static void declare_foreign(Config& config, BackboneOptions& backbone);
    // Declares the number of positions. `needed` says how many there are by default, such as "both halves need".
    static void declare_positions(Config& config, BackboneOptions& backbone, const std::string& needed);
    // Declares the settings of a flow. The help text of each setting begins with `prefix`.
    static void declare_flow(Config& config, FlowOptions& flow, const std::string& prefix);

  protected:
    void declare_mask(Config& config);
    void declare_tokenizer(Config& config);
    void declare_training(Config& config);
};

template <class Items, class More>
void append(Items& items, const More& more) {
    items.insert(items.end(), more.begin(), more.end());
}

// How much a model is surprised by a line: -log p in nats, of the line and of its tokens.
struct LineScore {
    double nats = 0;
    int tokens = 0;  // number of tokens that the model predicts, with the end of the line
    // The predicted tokens and their shares of `nats`, in the order of the row that predicts them. Empty if the model
    // has no such shares, as those of latents and of masked diffusion.
    Tokens labels;
    Numbers each;
};

using LineScores = std::vector<LineScore>;

// Returns the ids of the special tokens [PAD], [UNK], [CLS], [SEP] and [MASK], as far as the vocabulary has them.
Tokens special_ids(const Vocabulary& vocabulary);

class Run {
  public:
    virtual ~Run() = default;

    virtual const RunSettings& common() const = 0;
    virtual RunSettings& settings_to_change() = 0;  // the settings of common(); resuming may change some
    virtual Stacks stacks() const = 0;
    virtual std::unique_ptr<Task> task(const TrainingText& text) = 0;
    // Adds the files that the run reads itself, such as the files of a task, to `origin`, which run.json stores.
    virtual void complete(TextOrigin& /*origin*/) const {}
    // Returns a vector for each line. The usual vector of a run with latents has the latents of the line without noise;
    // otherwise, it is the last hidden state averaged over the tokens of the line. Returns an empty list if the run has
    // no vectors of this choice.
    virtual Vectors vectors(const Strings& /*lines*/, const VectorChoice& /*which*/) const { return {}; }
    // The usual vectors, for example as the input of a classifier.
    Vectors features(const Strings& lines) const { return vectors(lines, {}); }
    // Returns how much the model is surprised by each line, as ./evaluate measures it: the loss of the first objective
    // that can read the lines and predicts tokens or, in masked diffusion, its bound, with -log p of the length if the
    // run draws it; in UniVAE, an estimate by `importance` samples. Line i has the random numbers that `seed` and i
    // determine. Throws BadUsage if the model has no such number.
    virtual LineScores scores(const Strings& lines, int importance, std::uint64_t seed) const;
    // Evaluates the run, usually on held-out data (models/runs/measures.h).
    virtual Measures measures(const Measuring& how) = 0;
    // Returns a generator of lines or samples (models/runs/writer.h). Throws BadUsage if the run cannot generate.
    virtual RunWriter writer(const Writing& how);
    // Fits a prior to the latents of the training sentences and saves it in the step folder. Returns a message for the
    // user. Throws BadInput if the family has no latents, and BadUsage if the model learns its prior (source_prior).
    virtual std::string fit_prior(const TrainingText& text);
    // Returns the stack that can be saved as a Hugging Face checkpoint, or null if there is none.
    virtual const Backbone* bert() const { return nullptr; }
    // Writes config.json of a checkpoint into a folder: the settings, and the sizes under Hugging Face's names.
    void save_config(const std::string& folder);
    // Reads the weights of a checkpoint from `weights`. Also reads run.json and, if there is one, tokenizer.json from
    // the run folder.
    void load_checkpoint(const RunFolder& folder, std::int64_t at_step, const TensorFile& weights);
    // Replaces the weights of a loaded checkpoint by their moving average. Does nothing if the setting ema is 0. If the
    // file with the moving average is missing, logs a warning and leaves the weights as they are.
    void use_moving_average();
    // Replaces the weights by their mean over `count` checkpoints: the loaded checkpoint and the `count` - 1
    // checkpoints before it. Throws BadUsage if there are not enough checkpoints.
    void average_checkpoints(int count);
    // Writes vocab.txt and, if the tokenizer follows Hugging Face's rules (Rules::hugging_face), tokenizer.json. Only a
    // tokenizer from --init or --vocab can follow these rules.
    void save_tokenizer(const RunFolder& folder) const;
    // Writes the tokenizer and the record (run.json) of a new run. Adds two hashes to the record: the hash of the
    // tokenizer, and the salt, which shows whether a checkpoint belongs to the run.
    void start(const RunFolder& folder, nlohmann::json record);
    // Returns a description of the model, such as "6 layers, the upper 4 with a latent of 32 numbers, width 128".
    virtual std::string description() const = 0;
    // Returns a line about the examples that the run reads itself, such as the number of files of each class. Empty if
    // there is nothing to say.
    virtual std::string own_text() const { return ""; }
    // Returns a command that generates text with the run in this folder; empty if the run was not trained to generate.
    virtual std::string writing_command(const std::string& folder) const = 0;

    // Encodes lines or, if targets are given, pairs.
    StoredSentences sentences(const Strings& lines, const Strings& targets = {}) const {
        return encode_pairs(tokenizer, lines, targets, common().source_limit().tokens, common().target_limit().tokens);
    }
    // Returns the sentences of the training text. If `targets` is false, their targets are left out.
    SharedSentences training_sentences(const TrainingText& text, bool targets = true) const {
        return text.sentences(tokenizer, common().source_limit().tokens, common().target_limit().tokens, targets);
    }
    std::string decode(const Tokens& tokens) const { return tokenizer.decode(tokens); }
    Strings pieces_of(const Tokens& tokens) const {  // the text of each token
        Strings all;
        for (int token : tokens) all.emplace_back(tokenizer.vocabulary().token(token));
        return all;
    }
    Tokens special_tokens() const { return special_ids(tokenizer.vocabulary()); }

    WordPiece tokenizer;
    Parameters parameters;
    std::int64_t step = 0;
    std::string step_folder;  // path of the step folder from which the run was loaded; empty for a new run
    bool averaged = false;    // whether the weights are the mean of several checkpoints
    std::string run_json;     // contents of run.json of a loaded run; empty for a new run
    std::string salt;         // hash that run.json and all checkpoints of one run have in common; may be empty

  protected:
    Run(const RunSettings& settings, Vocabulary vocabulary, DType storage, Device device);
    // Called after a checkpoint was loaded. `record` has the contents of run.json.
    virtual void loaded(const nlohmann::json& /*record*/) {}
    // Write and read further files of the run folder that only some runs have.
    virtual void save_more(const RunFolder& /*folder*/) const {}
    virtual void load_more(const RunFolder& /*folder*/) {}
};

// Reads vocab.txt of a run. Throws BadInput if vocab.txt or tokenizer.json has changed since the run was started.
Vocabulary vocabulary_of(const RunFolder& folder);
std::string hash_text(const std::string& bytes);  // 16 hexadecimal digits, as in run.json

// Reads the settings from config.json of a checkpoint. Throws BadInput if the checkpoint belongs to another family than
// `settings`.
void read_settings(const RunFolder& folder, std::int64_t step, RunSettings& settings);

// A family of models: a row of the table families(). Programs use the row to create, load and describe runs.
struct Family {
    const char *name, *what;
    const char* architecture;  // the name of the model in config.json
    TextKind reads;
    // `options` says which groups of command-line options of ./generate and ./evaluate this family supports. The values
    // are single bits, because several families may support the same group.
    enum Options : unsigned { no_options = 0, of_latents = 1, of_search = 2, of_insertion = 4, of_vectors = 8 };
    Options options;
    Strings objectives;  // the family's objectives; empty if there is no choice
    std::unique_ptr<RunSettings> (*settings)();
    std::unique_ptr<Run> (*fresh)(const RunSettings& settings, Vocabulary vocabulary, DType storage, Device device);
    std::unique_ptr<Run> (*load_as)(const std::string& path, bool to_train, Device device, DType storage);
    std::unique_ptr<Run> load(const std::string& path, bool to_train, Device device) const {
        return load_as(path, to_train, device, DType::f32);
    }
};
const std::vector<Family>& families();
// Returns the family called `name`. If there is no such family, returns the first family that has an objective called
// `name`. If there is no such objective either, throws BadUsage with a list of the families.
const Family& find_family(const std::string& name);
const Family& family_of_run(const std::string& path);  // throws BadInput if the path is not a run

}  // namespace masquerade
