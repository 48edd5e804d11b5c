// SPDX-License-Identifier: MIT
// Classification of the examples of a task (data/tasks/), such as a long-range benchmark. The model is UniLm; a label
// is a token of the task's vocabulary.
#pragma once
#include "data/tasks/examples.h"
#include "models/nets/unilm.h"
#include "models/runs/measures.h"
#include "models/runs/run_of.h"
#include "models/tasks/objective.h"

namespace masquerade {

struct ClassifySettings : RunSettings {
    static constexpr const char* name = "classify";
    TaskOptions task;
    BackboneOptions model;
    int held_out = 1000;

    ClassifySettings();
    const char* family() const override { return name; }
    void declare(Config& config) override;
    Strings words() const override {
        return task.reads_words() ? WordList() : open_examples(task, train.seed)->vocabulary;
    }
    Strings answers() const override {
        return task.reads_words() ? open_examples(task, train.seed)->vocabulary : WordList();
    }
    bool takes_any_stack() const override { return true; }
    void adopt(const Stacks& stacks) override { model = stacks.first; }
    BackboneOptions net(int vocabulary) const;
};

class ClassifyRun : public RunOf<ClassifySettings, UniLm> {
  public:
    explicit ClassifyRun(const ClassifySettings& s, Vocabulary v, DType storage = DType::f32,
                         Device device = Device::cpu, const TensorFile* weights = nullptr);

    Stacks stacks() const override { return {model.backbone.options}; }
    std::unique_ptr<Task> task(const TrainingText& text) override;
    void complete(TextOrigin& origin) const override;
    std::string description() const override;
    std::string own_text() const override { return source->description(); }
    std::string writing_command(const std::string&) const override { return ""; }
    // Returns the loss (the first measure), the accuracy and the baselines on at most `examples` held-out examples.
    MeasureRows measures(std::uint64_t examples);
    Measures measures(const Measuring& how) override;
    Vectors vectors(const Strings& lines, const VectorChoice& which) const override;

    // Returns the training examples first, first + 1, ... Stops before their tokens exceed batch_tokens in total, but
    // returns at least one example.
    std::vector<Solved> examples(std::uint64_t first) const;
    // Returns these examples, whose numbers are first, first + 1, ..., as sentences. Each sentence is named by the
    // number of its example; random numbers, such as dropout, depend on this name.
    StoredSentences sentences(const std::vector<Solved>& examples, std::uint64_t first) const;
    // Makes a batch of such sentences.
    Batch batch(const Sentences& sentences, int pad_to) const;

    const std::unique_ptr<Examples> source;

  protected:
    void loaded(const nlohmann::json& record) override;

  private:
    // Throws BadInput if the run was loaded and the files of its task have changed since it was trained.
    void expect_same_files() const;

    ObjectiveOptions options_;
    std::uint64_t files_hash_ = 0;  // hash of the task's files, from run.json of a loaded run; 0: there is none
    std::uint64_t measured_ = 0;    // number of held-out examples on which baselines_ were measured; 0: not measured
    MeasureRows baselines_;
};

}  // namespace masquerade
