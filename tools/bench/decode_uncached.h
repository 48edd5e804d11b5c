// SPDX-License-Identifier: MIT
// Writing without a cache: a step runs the stack over the source and all that is written, of every prefix. This is what a
// cache saves; both have the same bits.
#pragma once
#include "models/writing/unilm_decoder.h"

namespace masquerade {

class UncachedUniLm : public SourceReader {
  public:
    UncachedUniLm(const UniLm& model, const ReadingOptions& options);

    void read(const std::vector<const Sentence*>& sources, int most_rows) override;
    int vocabulary() const override { return model_.backbone.options.vocabulary; }
    const float* step(const std::vector<Row>& rows) override;

  private:
    // Every prefix with its source, asked for what follows its last token.
    ObjectiveBatch batch(const std::vector<Row>& rows) const;

    const UniLm& model_;
    const ReadingOptions options_;
    Arena arena_;
    Tape tape_;
    std::vector<const Sentence*> sources_;
    std::vector<std::vector<int>> written_;  // of the rows of the step before
    std::vector<float> logits_;
};

}  // namespace masquerade
