// SPDX-License-Identifier: MIT
// Training UniLM: what the trainer asks of it.
#pragma once
#include "models/unilm_run.h"

namespace masquerade {

class UniLmTask : public Task {
  public:
    UniLmTask(UniLmRun& run, std::vector<Sentence> train, std::vector<Sentence> held_out);

    std::string next_batch(std::int64_t step) override;
    Tensor* loss(Tape& tape, std::int64_t step, std::int64_t schedule_steps) override;
    std::int64_t batch_tokens() const override { return batch_.target_count; }
    std::vector<Metric> validate() override;
    std::string show(std::int64_t step) override;
    std::vector<std::uint64_t> place() const override;
    void move_to(const std::vector<std::uint64_t>& place) override;
    void save(const std::string& folder) const override { run_.save_config(folder); }

  private:
    UniLmRun& run_;
    std::vector<Sentence> train_, held_out_;
    SentenceSource source_;
    ObjectiveBatch batch_;
};

}  // namespace masquerade
