// SPDX-License-Identifier: MIT
// Training UniVAE: what the trainer asks of it.
#pragma once
#include "models/runs/univae_run.h"

namespace masquerade {

class UniVaeTask : public Task {
  public:
    UniVaeTask(UniVaeRun& run, std::vector<Sentence> train, std::vector<Sentence> held_out);

    std::string next_batch(std::int64_t step) override;
    Tensor* loss(Tape& tape, std::int64_t step, std::int64_t schedule_steps) override;
    void learn(Tape& tape) override { run_.model.learn(tape, last_); }
    std::int64_t batch_tokens() const override { return batch_.target_count; }
    std::vector<Metric> metrics() override;
    std::vector<Metric> validate() override;
    std::string show(std::int64_t step) override;
    void finish(const std::string& step_folder) override;
    // The prior of the latents, from at most so many training sentences, into the step's folder; throws what goes
    // wrong.
    void fit(const std::string& step_folder, int sentences);
    std::vector<std::uint64_t> place() const override { return source_.numbers(); }
    void move_to(const std::vector<std::uint64_t>& place) override { source_.move_to(place); }
    void save(const std::string& folder) const override { run_.save_config(folder); }

  private:
    UniVaeRun& run_;
    std::vector<Sentence> train_, held_out_;
    SentenceSource source_;
    UniVaeBatch batch_;
    LatentNoise noise_;
    UniVae::Loss last_;
};

}  // namespace masquerade
