// SPDX-License-Identifier: MIT
// The base class of the training tasks on sentences. Such a task goes through the training sentences batch by batch.
// Checkpoints store the position that the task has reached in the order of the sentences.
#pragma once
#include "data/sentences.h"
#include "models/batch/words.h"
#include "models/runs/run.h"
#include "models/tasks/batch_parts.h"

namespace masquerade {

// Return lines for Task::warnings() (engine/train/trainer.h). cut_warning() says that `cut` of `all` lines are longer
// than `limit` and are truncated; if `cut` is 0, it returns no line. `what` is the word for the lines in the message,
// such as "targets" or "files"; `parts` is the unit of the limit, "tokens" or "bytes". unknown_warning() says how many
// words are read as [UNK]. lost_warnings() says both of sentences.
Strings cut_warning(std::int64_t cut, std::int64_t all, const char* what, const char* parts, const LineLimit& limit);
Strings unknown_warning(const ReadCounts& counts);
Strings lost_warnings(const Run& run, const SentenceList& sentences);

class SentenceTask : public Task {
  public:
    SentenceTask(Run& run, std::shared_ptr<const SentenceList> train, std::vector<Sentence> held_out)
        : train_(std::move(train)),
          held_out_(std::move(held_out)),
          base_run_(run),
          source_(train_, run.common().train.seed) {}

    std::vector<std::uint64_t> place() const override { return source_.numbers(); }
    void move_to(const std::vector<std::uint64_t>& place) override { source_.move_to(place); }
    void save(const std::string& folder) const override { base_run_.save_config(folder); }
    Strings warnings() const override { return lost_warnings(base_run_, *train_); }
    int parts() const override { return batch_.count(); }
    std::string next_part() override { return batch_.next(); }
    std::int64_t batch_tokens() const override { return batch_.now().whole().predictions; }
    std::string first_documents(int columns) const override {
        return batch_in_words(batch_.all()[0], base_run_.tokenizer.vocabulary(), columns);
    }

  protected:
    static constexpr std::size_t validated = 400;  // maximum number of held-out sentences that validate() uses
    static constexpr std::size_t shown = 4;        // maximum number of sentences in each list of show()

    // Sets batch_ to the next sentences, cut into parts, and returns the bucket of the first part. make(some) makes the
    // batch of a part. The sizes of the sentences add up to the setting batch_tokens or less.
    std::string choose(const std::function<Batch(const Sentences&)>& make, const SentenceSize& size = tokens_in) {
        const RunSettings& s = base_run_.common();
        batch_ = BatchParts(source_.take(s.batch_tokens, size), s.train.parts, make);
        return batch_.bucket();
    }

    const std::shared_ptr<const SentenceList> train_;
    const std::vector<Sentence> held_out_;
    BatchParts batch_;  // the batch of the current step

  private:
    Run& base_run_;
    SentenceSource source_;
};

}  // namespace masquerade
