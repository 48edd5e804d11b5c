// SPDX-License-Identifier: MIT
// The part of a task that all families share: batches of training sentences, in an order that a checkpoint keeps.
#pragma once
#include "data/sentences.h"
#include "models/runs/run.h"

namespace masquerade {

// Warnings of a task (engine/train/trainer.h): that so many of all lose their end, none where no one does; and what the
// sentences of a text lose, their ends and the words that are read as [UNK].
std::vector<std::string> cut_warning(std::int64_t cut, std::int64_t all, const char* what, const char* parts,
                                     const LineLimit& limit);
std::vector<std::string> lost_warnings(const Run& run, const std::vector<Sentence>& sentences);

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
    std::vector<std::string> warnings() const override { return lost_warnings(all_, train_); }

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
