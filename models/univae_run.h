// SPDX-License-Identifier: MIT
// UniVAE as a run on the disk: its settings, its tokenizer, its weights.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/train/config.h"
#include "engine/train/run_folder.h"
#include "engine/train/trainer.h"
#include "models/univae.h"
#include "models/univae_decoder.h"
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
    TrainOptions train;

    UniVaeSettings();
    void declare(Config& config);      // every key; the settings must outlive the Config
};

// A model with its tokenizer, fresh or from a run folder (or a step folder in it). It reads and writes in f32; to be
// trained on, it has the precision of its settings.
class UniVaeRun {
  public:
    UniVaeRun(const UniVaeSettings& settings, Vocabulary vocabulary, DType storage = DType::f32);
    static std::unique_ptr<UniVaeRun> load(const std::string& path, bool to_train = false);

    // config.json of a checkpoint: the settings, and the sizes under the names Hugging Face gives them.
    void save_config(const std::string& folder) const;

    UniVaeDecoder::Special special() const;
    std::vector<Sentence> sentences(const std::vector<std::string>& lines) const;
    std::string text(const Tokens& tokens) const { return tokenizer.decode(tokens); }

    UniVaeSettings settings;
    WordPiece tokenizer;
    Parameters parameters;
    UniVae model;
    std::int64_t step = 0;
    std::string run_json;  // of a loaded run; empty where there is none
};

}  // namespace masquerade
