// SPDX-License-Identifier: MIT
// Writes targets with one stack: sources are read once, and their keys and values are the memory.
#pragma once
#include "models/nets/unilm.h"
#include "models/writing/cached_writer.h"

namespace masquerade {

// How sources are read: as in training (models/tasks/objective.h).
struct ReadingOptions {
    bool causal = false;                   // language models; else in both directions
    int source_type = 0, target_type = 1;  // segment ids
    int target_start = -1;                 // position of a target's first token; -1: that after the source
    int longest = 64;                      // tokens of a target, at most
    // Sources are endings, and what is written comes before them, from right to left. The first of the `longest` tokens
    // that may be missing has position 0, where a whole text of at most `room` tokens has its [CLS].
    bool backward = false;
    int room = 64;
    std::shared_ptr<const LayerMasks> masks;  // in words, as in training; null: none
    bool goes_on = false;                     // of one text: what is written belongs to the part that is read
};

class UniLmDecoder : public SourceReader {
  public:
    UniLmDecoder(const UniLm& model, const ReadingOptions& options);

    // After it the first step() gives what follows the sources; the next feeds token number 0 of the targets, and so
    // on.
    void read(const std::vector<const Sentence*>& sources, int most_rows) override;

  private:
    const ReadingOptions options_;
    // what the ops read
    TokenRows rows_, edge_;
    SegmentGraph graph_, edge_graph_;
    LayerGraphs masks_;
    std::vector<int> edge_rows_;  // the row of each source that writing starts from
};

}  // namespace masquerade
