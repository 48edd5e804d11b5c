// SPDX-License-Identifier: MIT
// An encoder and a decoder with their tokenizer, fresh or from a run folder.
#pragma once
#include "models/writing/seq2seq_decoder.h"
#include "models/runs/target_run.h"

namespace masquerade {

struct Seq2SeqSettings : TargetSettings {
    EncoderDecoderOptions model;
    double span = 0.5;

    Seq2SeqSettings();
    void declare(Config& config) override;
    void adopt(const EncoderDecoderOptions& stacks) override;
};

class Seq2SeqRun : public TargetRun {
  public:
    Seq2SeqRun(const Seq2SeqSettings& settings, Vocabulary vocabulary, DType storage = DType::f32,
               Device device = Device::cpu);
    static std::unique_ptr<Seq2SeqRun> load(const std::string& path, bool to_train = false,
                                            Device device = Device::cpu);

    const Seq2SeqSettings& common() const override { return settings; }
    RunSettings& settings_to_change() override { return settings; }
    EncoderDecoderOptions stacks() const override { return model.options; }
    void save_config(const std::string& folder) const override;
    std::unique_ptr<Task> task(const TrainingText& text) override;
    std::string description() const override;

    bool reads_pairs() const override { return mixture.has(Objective::pairs); }
    bool writes() const override { return reads_pairs(); }
    std::vector<std::vector<Hypothesis>> write(const std::vector<const Sentence*>& sources,
                                               SearchOptions options, std::uint64_t seed) const override;
    std::vector<PartLoss> losses(const std::vector<const Sentence*>& sentences, bool targets) const override;
    ObjectiveOptions objective_options() const;

    Seq2SeqSettings settings;
    PairMixture mixture;
    EncoderDecoder model;
};

}  // namespace masquerade
