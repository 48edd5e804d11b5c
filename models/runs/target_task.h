// SPDX-License-Identifier: MIT
// Training what writes targets: what the trainer asks of it.
#pragma once
#include "models/runs/sentence_task.h"
#include "models/runs/target_run.h"

namespace masquerade {

class TargetTask : public SentenceTask {
  public:
    TargetTask(TargetRun& run, std::vector<Sentence> train, std::vector<Sentence> held_out)
        : SentenceTask(run, std::move(train), std::move(held_out)), run_(run) {}

    std::string next_batch(std::int64_t step) override;
    Tensor* loss(Tape& tape, std::int64_t step, std::int64_t schedule_steps) override;
    std::int64_t batch_tokens() const override { return batch_.asked.count; }
    std::vector<Metric> validate() override;
    std::string show(std::int64_t step) override;

  private:
    const TargetRun& run_;
    Batch batch_;
};

}  // namespace masquerade
