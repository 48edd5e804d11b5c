// SPDX-License-Identifier: MIT
// The base class of the training tasks on sentences. Such a task goes through the training sentences batch by batch.
// Checkpoints store the position that the task has reached in the order of the sentences.
#pragma once
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "data/sentences.h"
#include "models/batch/words.h"
#include "models/runs/run.h"
#include "models/tasks/batch_parts.h"

namespace masquerade {

// Add lines for Task::warnings() (engine/train/trainer.h), if there is something to say. add_cut_warning() says that
// some lines are longer than `limit` and are truncated. `what` is the word for the lines in the message, such as
// "targets" or "files"; `parts` is the unit of the limit, "tokens" or "bytes". add_unknown_warning() says how many
// words are read as [UNK].
void add_cut_warning(Strings& warnings, const ReadCounts& counts, const char* what, const char* parts,
                     const LineLimit& limit);
void add_unknown_warning(Strings& warnings, const ReadCounts& counts);

// How a task makes the batches of its steps. Another thread may call these functions during the step before. They may
// read of the run only what does not change during training, such as settings and masks. They must not read weights,
// call objective_options(), which fills a cache, or touch a device.
struct BatchMaker {
    std::function<Batch(const Sentences&, std::uint32_t step)> make;
    // Returns the size of a sentence in this step; the sizes of a batch add up to the setting batch_tokens or less.
    std::function<std::size_t(const Sentence&, std::uint32_t step)> size;
};

class SentenceTask : public Task {
  public:
    SentenceTask(Run& run, SharedSentences train, StoredSentences held_out, BatchMaker maker);

    std::string next_batch(std::int64_t step) override;
    std::vector<std::uint64_t> place() const override { return place_; }
    void move_to(const std::vector<std::uint64_t>& place) override;
    void save(const std::string& folder) const override { base_run_.save_config(folder); }
    Strings warnings() const override;
    int parts() const override { return batch_.count(); }
    std::string next_part() override { return batch_.next(); }
    std::int64_t batch_tokens() const override { return batch_.now().whole().predictions; }
    std::string first_documents(int columns) const override {
        return batch_in_words(batch_.all()[0], base_run_.tokenizer.vocabulary(), columns);
    }

    // If true, another thread makes the batch of the next step during a step; the batches are the same. The constructor
    // sets it on a GPU, where making the batch would otherwise delay the ops that the main thread requests.
    bool ahead;

  protected:
    static constexpr std::size_t validated = 400;  // maximum number of held-out sentences that validate() uses
    static constexpr std::size_t shown = 4;        // maximum number of sentences in each list of show()

    const SharedSentences train_;
    const StoredSentences held_out_;
    BatchParts batch_;  // the batch of the current step

  private:
    // The batch of a step, and the position in the sentences behind it.
    struct Chosen {
        std::int64_t step;
        BatchParts batch;
        std::vector<std::uint64_t> place;
    };
    Chosen choose(std::int64_t step);

    Run& base_run_;
    const BatchMaker maker_;
    SentenceSource source_;             // if next_ is valid, only its thread may use it
    std::vector<std::uint64_t> place_;  // the position behind the batch of the current step
    std::future<Chosen> next_;          // the batch of the next step; its destructor waits for the thread
};

}  // namespace masquerade
