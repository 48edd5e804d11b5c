// SPDX-License-Identifier: MIT
// Writing targets, many prefixes at a time. The keys and values of a source are made once and shared by all its
// prefixes; of a prefix only what was written is kept besides, one row a step. What is written this way has the bits of a
// pass over the whole.
#pragma once
#include <vector>

#include "models/writing/target_cache.h"
#include "models/nets/unilm.h"

namespace masquerade {

// How sources are read: as in training (models/tasks/objective.h).
struct ReadingOptions {
    bool causal = false;                   // language models; else in both directions
    int source_type = 0, target_type = 1;  // segment ids
    int target_start = -1;                 // position of a target's first token; -1: that after the source
    int longest = 64;                      // tokens of a target, at most
    // Sources are endings, and what is written comes before them, from right to left. The first of the `longest` tokens that
    // may be missing has position 0, where a whole text of at most `room` tokens has its [CLS].
    bool backward = false;
    int room = 64;
};

class UniLmDecoder : public SourceReader {
  public:
    UniLmDecoder(const UniLm& model, const ReadingOptions& options);

    void read(const std::vector<const Sentence*>& sources, int most_rows) override;
    int vocabulary() const override { return model_.backbone.options.vocabulary; }
    // The first call, of any rows without parent, feeds nothing: it gives what follows the sources. The next feeds token
    // number 0 of the targets, and so on.
    const float* step(const std::vector<Row>& rows) override;

  private:
    View feed(const std::vector<Row>& rows);

    const UniLm& model_;
    const ReadingOptions options_;
    Arena arena_;
    Tape tape_;
    KeptKeys memory_;  // of the sources
    TargetCache cache_;
    std::vector<int> begin_;    // (sources + 1) rows of memory
    std::vector<int> names_;    // of the sources
    std::vector<int> next_;     // positions of the first tokens written
    bool asked_ = false;        // whether any step was
    std::vector<float> after_sources_;  // (sources, V)
    std::vector<float> logits_;
    // what the ops of a step read
    TokenRows rows_, edge_;
    SegmentGraph graph_, edge_graph_;
    std::vector<int> write_rows_, edge_rows_;  // the row of each source that writing starts from
};

}  // namespace masquerade
