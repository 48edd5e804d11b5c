// SPDX-License-Identifier: MIT
// A UniLM with its tokenizer, fresh or from a run folder: its settings, what it is trained to do, how it writes.
#pragma once
#include "models/runs/target_run.h"
#include "models/writing/unilm_decoder.h"

namespace masquerade {

struct UniLmSettings : TargetSettings {
    BackboneOptions model;
    bool fixed_target_start =
        false;  // the target's positions start at max_length, whatever the source's length
    double hidden = 0.15, predicted = 1.0 / 6;

    UniLmSettings();
    void declare(Config& config) override;
    void adopt(const EncoderDecoderOptions& stacks) override { model = stacks.stack; }
};

class UniLmRun : public TargetRun {
  public:
    UniLmRun(const UniLmSettings& settings, Vocabulary vocabulary, DType storage = DType::f32,
             Device device = Device::cpu);
    static std::unique_ptr<UniLmRun> load(const std::string& path, bool to_train = false,
                                          Device device = Device::cpu);

    const UniLmSettings& common() const override { return settings; }
    RunSettings& settings_to_change() override { return settings; }
    EncoderDecoderOptions stacks() const override { return {model.backbone.options, 0}; }
    void save_config(const std::string& folder) const override;
    std::unique_ptr<Task> task(const TrainingText& text) override;
    std::string description() const override;

    bool reads_pairs() const override { return mixture.has(Objective::pairs); }
    bool writes() const override;
    bool writes_backward() const override;
    bool continues() const override { return writes() && !pairs_; }
    std::vector<std::vector<Hypothesis>> write(const std::vector<const Sentence*>& sources,
                                               SearchOptions options, std::uint64_t seed) const override;
    std::vector<PartLoss> losses(const std::vector<const Sentence*>& sentences, bool targets) const override;
    ObjectiveOptions objective_options() const;
    ReadingOptions reading_options() const;

    UniLmSettings settings;
    ObjectiveMixture mixture;
    UniLm model;

  protected:
    std::unique_ptr<SourceReader> backward_reader(int most) const override;

  private:
    bool trained_on(std::initializer_list<const char*> objectives) const;  // on one of them

    bool pairs_ = false;  // whether its text has targets, asked for or not
};

}  // namespace masquerade
