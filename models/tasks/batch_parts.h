// SPDX-License-Identifier: MIT
// The batch of a training step, cut into parts (TrainOptions::parts). The forward and the backward run for one part
// after the other. The optimiser then makes one update.
#pragma once
#include <functional>
#include <vector>

#include "data/sentences.h"
#include "models/batch/batch.h"

namespace masquerade {

// Cuts a list of at least one item into min(parts, sizes.size()) pieces that follow one another. The pieces have about
// the same total size, and none is empty. sizes[i] is the size of item i. Returns the index of the first item of each
// piece, and then the number of items.
std::vector<std::size_t> cut_evenly(const std::vector<std::size_t>& sizes, int parts);

// Like cut_evenly(), for sentences. The number of pieces is the sum of their sizes, divided by `limit` and rounded up.
// So a piece has about the size `limit` or less, unless it is one large sentence.
std::vector<std::size_t> cut_by_size(const Sentences& sentences, std::size_t limit, const SentenceSize& size);

class BatchParts {
  public:
    BatchParts() = default;
    // Cuts the sentences into at most `parts` parts. make(some) makes the batch of a part. Batch::whole() then counts
    // the documents and predictions of all parts. The first part is the current one.
    BatchParts(const Sentences& sentences, int parts, const std::function<Batch(const Sentences&)>& make);

    int count() const { return int(batches_.size()); }
    const Batch& now() const { return batches_[now_]; }  // the current part
    bool at_last() const { return now_ + 1 == batches_.size(); }
    const std::string& bucket() const { return now().bucket; }
    const std::string& next() {  // chooses the next part, and returns its bucket
        now_++;
        return bucket();
    }
    const std::vector<Batch>& all() const { return batches_; }

  private:
    std::vector<Batch> batches_;
    std::size_t now_ = 0;
};

}  // namespace masquerade
