// SPDX-License-Identifier: MIT
// Generates targets with one stack. Each source is read once; its keys and values are the memory.
#pragma once
#include "models/nets/unilm.h"
#include "models/writing/cached_writer.h"

namespace masquerade {

// How sources are read. The options must agree with training (models/tasks/objective.h).
struct ReadingOptions {
    bool causal = false;                   // true: left to right (language models); false: in both directions
    int source_type = 0, target_type = 1;  // segment ids
    int target_start = -1;                 // position of a target's first token; -1: directly after the source
    int longest = 64;                      // maximum number of tokens of a target
    // Whether sources are the ends of texts; the text before them is generated from right to left. A source of n tokens
    // starts at position min(longest, room - n), so that a whole text of at most `room` tokens can start at position 0.
    bool backward = false;
    int room = 64;
    std::shared_ptr<const LayerMasks> masks;  // masks in words, as in training; null: none
    bool goes_on = false;                     // whether the generated text continues the part that is read
};

class UniLmDecoder : public SourceReader {
  public:
    UniLmDecoder(const UniLm& model, const ReadingOptions& options);

    // After read(), the first step() returns the logits of the targets' first tokens; the second step() feeds these
    // tokens.
    void read(const std::vector<const Sentence*>& sources, int most_rows) override;

  private:
    const ReadingOptions options_;
    // Inputs of the ops of read(), which must outlive the tape's step.
    TokenRows rows_, edge_;
    SegmentGraph graph_, edge_graph_;
    LayerGraphs masks_;
    std::vector<int> edge_rows_;  // the row of each source at which generation starts
};

}  // namespace masquerade
