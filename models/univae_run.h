// SPDX-License-Identifier: MIT
// UniVAE as a run on the disk: its settings, its tokenizer, its weights.
#pragma once
#include <memory>
#include <optional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/train/config.h"
#include "engine/train/run_folder.h"
#include "engine/train/trainer.h"
#include "models/univae.h"
#include "models/univae_decoder.h"
#include "models/univae_prior.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

struct UniVaeSettings {
    UniVaeOptions model;
    int vocabulary = 4000;             // tokens wanted of a vocabulary that is learned
    bool cased = false;
    double beta = 1;                   // weight of a gaussian's KL at the end of its schedule
    std::string kl_schedule = "linear";
    int batch_tokens = 360;            // of the encoder half of a batch
    DType precision = DType::f32;      // storage of activations and matrices in training; masters are f32
    int prior_sentences = 20000;       // training sentences that the prior is fitted to in the end; 0: none is fitted
    TrainOptions train;

    UniVaeSettings();
    void declare(Config& config);      // every key; the settings must outlive the Config
};

// A model with its tokenizer, fresh or from a run folder (or a step folder in it). It reads and writes in f32; to be
// trained on, it has the precision of its settings.
class UniVaeRun {
  public:
    UniVaeRun(const UniVaeSettings& settings, Vocabulary vocabulary, DType storage = DType::f32,
              Device device = Device::cpu);
    static std::unique_ptr<UniVaeRun> load(const std::string& path, bool to_train = false,
                                           Device device = Device::cpu);

    // config.json of a checkpoint: the settings, and the sizes under the names Hugging Face gives them.
    void save_config(const std::string& folder) const;

    // The fitted prior of a loaded run: read where there is one, and whether there is.
    bool load_prior();
    // The same by the word of a user: "fitted" must be there (BadInput, BadUsage of a language model), "uniform" reads
    // nothing, "" takes what there is, with a note where that is nothing. A temperature asks for the fitted one.
    void choose_prior(const std::string& word, std::optional<double> temperature);
    static std::string prior_file(const std::string& folder) { return folder + "/prior.safetensors"; }
    // A latent vector of a sample, K Z numbers: from the fitted prior where `prior` is set, else from that of training.
    std::vector<double> draw(std::uint64_t seed, std::uint32_t line, std::uint32_t number) const;

    UniVaeDecoder::Special special() const;
    std::vector<Sentence> sentences(const std::vector<std::string>& lines) const;
    std::string text(const Tokens& tokens) const { return tokenizer.decode(tokens); }

    UniVaeSettings settings;
    WordPiece tokenizer;
    Parameters parameters;
    UniVae model;
    std::shared_ptr<const LatentPrior> prior;                        // fitted; null where there is none
    double prior_temperature = LatentPrior::default_temperature;
    std::int64_t step = 0;
    std::string step_folder;  // of a loaded run
    std::string run_json;  // of a loaded run; empty where there is none
};

}  // namespace masquerade
