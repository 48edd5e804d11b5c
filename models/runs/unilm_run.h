// SPDX-License-Identifier: MIT
// A run of one stack that is trained with any of the objectives for one stack, such as UniLM: its settings, tokenizer
// and model, and how it generates.
#pragma once
#include "models/runs/target_run.h"
#include "models/writing/unilm_decoder.h"

namespace masquerade {

struct UniLmSettings : TargetSettings {
    static constexpr const char* name = "unilm";
    BackboneOptions model;

    UniLmSettings();
    const char* family() const override { return name; }
    void declare(Config& config) override;
    void adopt(const Stacks& stacks) override { model = stacks.first; }
    Stacks stacks() const override { return {model}; }
    BackboneOptions net(int vocabulary) const;
    const std::vector<Objective>& table() const override { return objectives(); }
};

class UniLmRun : public RunOf<UniLmSettings, UniLm, TargetRun> {
  public:
    using RunOf::RunOf;

    const TargetNet& net() const override { return model; }
    Stacks stacks() const override { return {model.backbone.options}; }
    const Backbone* bert() const override { return &model.backbone; }
    Vectors vectors(const Strings& lines, const VectorChoice& which) const override;
    std::string description() const override;

    std::string unwritable(bool backward) const override {
        return masks.own ? masks.own->unwritable(reads_causally(), backward) : "";
    }
    bool continues() const override { return (writes() || diffusion()) && !pairs_; }
    std::vector<Hypotheses> write(const Sentences& sources, SearchOptions options, std::uint64_t seed) const override;
    ObjectiveOptions objective_options() const override;
    ReadingOptions reading_options() const;

  protected:
    void reads(const TrainingText& text) override;
    void loaded(const nlohmann::json& record) override;
    std::unique_ptr<SourceReader> backward_reader(int most) const override;

  private:
    // Whether, in generation, each token of a source sees only the tokens before it and itself. This is false if at
    // least one objective lets tokens of a source see the whole source in training.
    bool reads_causally() const { return !mixture.has(Objective::whole_source); }

    // For each token of the vocabulary, whether it continues a word. Null if it has not been needed yet.
    mutable std::shared_ptr<const std::vector<bool>> continues_word_;
    bool pairs_ = reads_pairs();  // whether the training text has targets (possible even if no objective needs them)
};

}  // namespace masquerade
