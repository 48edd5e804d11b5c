// SPDX-License-Identifier: MIT
// The part of a task that all families share: batches of training sentences, in an order that a checkpoint keeps.
#pragma once
#include "data/sentences.h"
#include "models/runs/run.h"

namespace masquerade {

class SentenceTask : public Task {
  public:
    SentenceTask(Run& run, std::vector<Sentence> train, std::vector<Sentence> held_out)
        : train_(std::move(train)),
          held_out_(std::move(held_out)),
          all_(run),
          source_(train_, run.common().train.seed) {}

    std::vector<std::uint64_t> place() const override { return source_.numbers(); }
    void move_to(const std::vector<std::uint64_t>& place) override { source_.move_to(place); }
    void save(const std::string& folder) const override { all_.save_config(folder); }

  protected:
    static constexpr std::size_t validated = 400;  // held-out sentences
    static constexpr std::size_t shown = 4;        // of each kind

    // The sentences of the next batch.
    std::vector<const Sentence*> take() { return source_.take(std::size_t(all_.common().batch_tokens)); }

    const std::vector<Sentence> train_, held_out_;

  private:
    Run& all_;
    SentenceSource source_;
};

}  // namespace masquerade
