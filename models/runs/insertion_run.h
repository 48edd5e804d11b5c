// SPDX-License-Identifier: MIT
// A run of an Insertion Transformer: its settings, tokenizer and model.
#pragma once
#include "models/runs/slot_settings.h"
#include "models/runs/target_run.h"
#include "models/writing/insertion_decoder.h"

namespace masquerade {

struct InsertionSettings : TargetSettings {
    static constexpr const char* name = "insertion";
    EncoderDecoderOptions model;  // if there is one stack, only model.stack is used
    SlotSettings slots;

    InsertionSettings();
    const char* family() const override { return name; }
    void declare(Config& config) override;
    void adopt(const Stacks& stacks) override { adopt_stacks(model, stacks); }
    InsertionOptions net(int vocabulary) const;  // the options of the model that these settings describe
    const std::vector<Objective>& table() const override { return insertion_objectives(); }
    Stacks stacks() const override {
        return form() == InsertionForm::two_stacks ? stacks_of(model) : Stacks{model.stack};
    }
    InsertionForm form() const;  // which stacks read source and canvas; follows from the objective
};

class InsertionRun : public RunOf<InsertionSettings, InsertionTransformer, TargetRun> {
  public:
    using RunOf::RunOf;

    const TargetNet& net() const override { return model; }
    Stacks stacks() const override;
    std::string description() const override;
    RunWriter writer(const Writing& how) override;
    Vectors vectors(const Strings& lines, const VectorChoice& which) const override;

    std::vector<Hypotheses> write(const Sentences& sources, SearchOptions options, std::uint64_t seed) const override;
    // Like write(), but also returns the round in which each token was inserted. `starts` has a canvas (the words to
    // start from) for each source; a canvas that is longer than longest_canvas() stays as it is. If `starts` is empty,
    // all canvases are empty at the start. Throws BadUsage if `options` ask for beams or samples.
    std::vector<Written> insert(const Sentences& sources, const SearchOptions& options,
                                std::vector<Canvas> starts = {}) const;
    // Makes a canvas (the text from which generation starts) from the words of a line. The word "_" does not become a
    // part of the canvas. Instead, it closes the slot at its place: nothing is inserted between the words before and
    // after "_". The slots between the tokens of one word are closed as well.
    Canvas canvas_of(const std::string& line) const;
    ObjectiveOptions objective_options() const override;
    // The maximum number of tokens of a canvas, which has no [SEP]; both maxima include it.
    int longest_canvas(const SearchOptions& o) const { return std::min(o.maximum, settings.max_target) - 1; }

  protected:
    // Computes the scores of all words (InsertionHead::scores) from the training text, if the order needs scores and
    // training begins.
    void reads(const TrainingText& text) override;
    Strings write_lines(const Sentences& sources, const SearchOptions& options, std::uint64_t seed,
                        MeasureRows& rows) const override;
};

}  // namespace masquerade
