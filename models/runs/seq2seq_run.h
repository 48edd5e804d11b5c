// SPDX-License-Identifier: MIT
// A run of an encoder-decoder Transformer: its settings, tokenizer and model.
#pragma once
#include "models/writing/seq2seq_decoder.h"
#include "models/runs/target_run.h"

namespace masquerade {

struct Seq2SeqSettings : TargetSettings {
    static constexpr const char* name = "seq2seq";
    EncoderDecoderOptions model;

    Seq2SeqSettings();
    const char* family() const override { return name; }
    void declare(Config& config) override;
    void adopt(const Stacks& stacks) override { adopt_stacks(model, stacks); }
    EncoderDecoderOptions net(int vocabulary) const;
    const std::vector<Objective>& table() const override { return objectives(true); }
    Stacks stacks() const override { return stacks_of(model); }
};

class Seq2SeqRun : public RunOf<Seq2SeqSettings, EncoderDecoder, TargetRun> {
  public:
    using RunOf::RunOf;

    const TargetNet& net() const override { return model; }
    Stacks stacks() const override { return stacks_of(model.options); }
    std::string description() const override;

    std::string unwritable(bool) const override { return masks.own ? masks.own->unwritable(/*goes_on=*/false) : ""; }
    std::vector<Hypotheses> write(const Sentences& sources, SearchOptions options, std::uint64_t seed) const override;
};

}  // namespace masquerade
