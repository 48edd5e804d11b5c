// SPDX-License-Identifier: MIT
// Questions about examples that a task makes or reads (data/tasks/): a long-range benchmark. The net is UniLM's; the
// answer is a token of the task's vocabulary.
#pragma once
#include "data/tasks/examples.h"
#include "models/nets/unilm.h"
#include "models/runs/measures.h"
#include "models/runs/run_of.h"
#include "models/tasks/objective.h"

namespace masquerade {

struct ClassifySettings : RunSettings {
    static constexpr const char *name = "classify",
                                *what = "one stack that answers questions: long-range tasks, made on the fly";
    static constexpr TextKind reads = TextKind::none;
    static constexpr auto options = ModelKind::no_options;
    static std::vector<std::string> objectives() { return {}; }
    TaskOptions task;
    BackboneOptions model;
    int held_out = 1000;

    ClassifySettings();
    const char* family() const override { return name; }
    const char* architecture() const override { return "Classifier"; }
    void declare(Config& config) override;
    std::vector<std::string> words() const override { return open_examples(task, train.seed)->vocabulary; }
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
    std::string writing_command(const std::string&) const override { return ""; }
    // The loss first.
    std::vector<Measure> measures(std::uint64_t examples);
    Measures measures(const Measuring& how) override;

    // Examples `first`, `first` + 1 ... whose rows fit into batch_tokens, one at least.
    std::vector<Solved> examples(std::uint64_t first, std::uint64_t end, bool held_out) const;
    // Rows are named by the examples' numbers.
    Batch batch(const std::vector<Solved>& examples, std::uint64_t first, int pad_to) const;

    const std::unique_ptr<Examples> source;

  protected:
    void loaded(const nlohmann::json& record) override;

  private:
    // BadInput where the files are no longer those that a loaded run was trained on.
    void expect_same_files() const;

    ObjectiveOptions options_;
    std::uint64_t files_hash_ = 0;  // of a loaded run, if it kept one
    std::uint64_t measured_ = 0;    // held-out examples of these
    std::vector<Measure> baselines_;
};

}  // namespace masquerade
