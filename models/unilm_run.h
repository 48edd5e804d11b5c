// SPDX-License-Identifier: MIT
// A UniLM with its tokenizer, fresh or from a run folder: its settings, what it is trained to do, how it writes.
#pragma once
#include "models/run.h"
#include "models/unilm_decoder.h"

namespace masquerade {

// "unilm", or several with weights: "mlm:2,unilm:2,lm:1,lm-reverse:1". Every batch has one of them, drawn by its weight.
struct ObjectiveMixture {
    struct Part {
        const Objective* objective;
        double weight;
    };
    std::vector<Part> parts;  // weights sum to 1

    static ObjectiveMixture parse(const std::string& words);  // BadUsage
    const Objective& at(std::uint64_t seed, std::uint32_t step) const;
    bool has(Objective::Trait trait) const;
};

struct UniLmSettings : RunSettings {
    BackboneOptions model;
    std::string objective = "unilm";
    int max_length = 64;  // tokens of a source, [CLS] and [SEP] among them
    int max_target = 24;  // tokens of a target, its [SEP] among them
    bool fixed_target_start =
        false;  // the target's positions start at max_length, whatever the source's length
    int source_type = 0, target_type = 1;
    double hidden = 0.15, predicted = 1.0 / 6;
    double label_smoothing = 0;  // of the loss that is trained on

    UniLmSettings();
    void declare(Config& config) override;
};

class UniLmRun : public Run {
  public:
    UniLmRun(const UniLmSettings& settings, Vocabulary vocabulary, DType storage = DType::f32,
             Device device = Device::cpu);
    static std::unique_ptr<UniLmRun> load(const std::string& path, bool to_train = false,
                                          Device device = Device::cpu);

    const RunSettings& common() const override { return settings; }
    void save_config(const std::string& folder) const override;
    std::unique_ptr<Task> task(const TrainingText& text) override;
    std::string description() const override;

    // Sources alone, or pairs where there are targets.
    std::vector<Sentence> sentences(const std::vector<std::string>& sources,
                                    const std::vector<std::string>& targets = {}) const;
    // Texts to be gone on with: no [SEP] follows what is given. An empty line gives [CLS] alone.
    std::vector<Sentence> beginnings(const std::vector<std::string>& lines) const;
    ObjectiveOptions objective_options() const;
    bool writes() const;  // whether it was trained to predict what comes next
    bool continues()
        const;  // of one text: no pair was ever seen, so what it writes goes on with what it read
    ReadingOptions reading_options() const;
    // What a search needs to know of these sources, to write at most so many tokens.
    std::vector<SearchSource> search_sources(const std::vector<const Sentence*>& sources, int maximum) const;
    // Targets of sources by `options`, 64 sources at a time: for each its hypotheses, the best first.
    std::vector<std::vector<Hypothesis>> write(const std::vector<const Sentence*>& sources,
                                               SearchOptions options, std::uint64_t seed) const;

    UniLmSettings settings;
    ObjectiveMixture mixture;
    UniLm model;
};

}  // namespace masquerade
