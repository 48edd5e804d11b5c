// SPDX-License-Identifier: MIT
// The training task of UniVAE.
#pragma once
#include "models/runs/sentence_task.h"
#include "models/runs/univae_run.h"

namespace masquerade {

class UniVaeTask : public SentenceTask {
  public:
    UniVaeTask(UniVaeRun& run, SharedSentences train, StoredSentences held_out);

    std::string next_batch(std::int64_t step) override;
    Tensor* loss(Tape& tape, std::int64_t step, std::int64_t schedule_steps) override;
    void keep() override { model_.keep(batch(), last_, coded_); }
    void learn(Tape&) override { model_.learn(last_, coded_, run_.settings.train.seed, step_); }
    const Batch& batch() const { return batch_.now(); }  // the current part of the batch of the step
    std::function<std::vector<Metric>()> metrics() override;
    std::vector<Metric> validate() override;
    std::string show(std::int64_t step) override;
    // Fits a prior. Does nothing if prior_sentences is 0 or the model has no latents. Also does nothing if the prior
    // depends on the source, because it is then trained with the model. If fitting fails, only logs a warning.
    void finish(const std::string& step_folder) override;
    // Fits a prior to at most `sentences` training sentences and saves it in the step folder. Returns its number of
    // components. Throws Error if this fails.
    int fit(const std::string& step_folder, int sentences);

  private:
    LatentNoise noise_of(const Batch& part) const;

    UniVaeRun& run_;
    UniVae& model_;
    std::uint32_t step_ = 0;  // the step whose batch was chosen
    UniVae::Loss last_;       // of the current part
    UniVae::Coded coded_;
};

}  // namespace masquerade
