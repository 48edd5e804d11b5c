// SPDX-License-Identifier: MIT
// Training what writes targets: what the trainer asks of it.
#pragma once
#include "models/runs/target_run.h"

namespace masquerade {

class TargetTask : public Task {
  public:
    TargetTask(TargetRun& run, std::vector<Sentence> train, std::vector<Sentence> held_out);

    std::vector<Metric> validate() override;
    std::string show(std::int64_t step) override;
    std::vector<std::uint64_t> place() const override { return source_.numbers(); }
    void move_to(const std::vector<std::uint64_t>& place) override { source_.move_to(place); }
    void save(const std::string& folder) const override { run_.save_config(folder); }

  protected:
    // The sentences of the next batch.
    std::vector<const Sentence*> take() { return source_.take(std::size_t(run_.common().batch_tokens)); }

  private:
    TargetRun& run_;
    std::vector<Sentence> train_, held_out_;
    SentenceSource source_;
};

// Of a run with a mixture of objectives, and a net that knows the loss of their batches.
template <class R>
class TaskOf : public TargetTask {
  public:
    TaskOf(R& run, std::vector<Sentence> train, std::vector<Sentence> held_out)
        : TargetTask(run, std::move(train), std::move(held_out)), run_(run) {}

    std::string next_batch(std::int64_t step) override {
        const auto& objective = run_.mixture.at(run_.settings.train.seed, std::uint32_t(step));
        batch_ = objective.batch(take(), std::uint32_t(step), run_.objective_options(), 64);
        return batch_.bucket;
    }
    Tensor* loss(Tape& tape, std::int64_t, std::int64_t) override {
        return run_.model.loss(tape, batch_, run_.settings.label_smoothing).total;
    }
    std::int64_t batch_tokens() const override { return batch_.target_count; }

  private:
    R& run_;
    decltype(R::mixture.parts[0].objective->batch({}, 0, {})) batch_;
};

template <class Settings, class Net, class O>
std::unique_ptr<Task> TargetRunOf<Settings, Net, O>::task(const TrainingText& t) {
    this->expect_fitting(t, mixture.has(Objective::mask_token));
    reads(t);
    return std::make_unique<TaskOf<TargetRunOf>>(*this, this->sentences(t.train, t.train_targets),
                                                 this->sentences(t.held_out, t.held_out_targets));
}

}  // namespace masquerade
