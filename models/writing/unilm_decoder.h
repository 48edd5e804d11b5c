// SPDX-License-Identifier: MIT
// Generates targets, or continues texts, with one stack. Each source is read once. The memory consists of what the
// attention of each layer stores about the source, such as keys and values.
#pragma once
#include "models/nets/unilm.h"
#include "models/writing/cached_writer.h"

namespace masquerade {

// How sources are read. The options must have the values that were used in training (models/tasks/objective.h).
struct ReadingOptions {
    bool causal = false;  // true: a token of a source sees itself and earlier tokens; false: the whole source
    int source_type = 0, target_type = 1;  // segment ids
    int target_start = -1;                 // position of a target's first token; -1: directly after the source
    int longest = 64;                      // maximum number of generated tokens
    int mask = -1;                         // id of [MASK] if the model only predicts tokens at a [MASK]; else -1
    // true: each source is the end of a text, and the text before the source is generated from right to left. A source
    // of n tokens then starts at position min(longest, room - n); the smaller positions are for the generated tokens.
    bool backward = false;
    int room = 64;                            // if `backward`: maximum number of tokens of the whole text
    std::shared_ptr<const LayerMasks> masks;  // the masks of RunSettings::mask; null: the usual masks
    bool goes_on = false;                     // whether the generated text continues the source (Memory::goes_on)
};

class UniLmDecoder : public SourceReader {
  public:
    UniLmDecoder(const Backbone& stack, const ReadingOptions& options);
    UniLmDecoder(const UniLm& model, const ReadingOptions& options) : UniLmDecoder(model.backbone, options) {}

    // After read(), the first step() returns the logits of the targets' first tokens; the second step() feeds these
    // tokens.
    void read(const Sentences& sources, int most_rows) override { read(sources, most_rows, {}); }
    // Like the function above, but calls `more`, if it is not empty, before every layer. `more` may change the input of
    // the layer: the rows of all sources, one source after another.
    void read(const Sentences& sources, int most_rows, const Backbone::BeforeLayer& more);

  private:
    const ReadingOptions options_;
    // Inputs of the ops of read(). They must outlive the tape's step. edge_ has copies of the input rows whose indices
    // are in edge_rows_ (see below).
    TokenRows rows_, edge_;
    SegmentGraph graph_, edge_graph_;
    LayerGraphs masks_;
    // For each source, the index in rows_ of the row next to the first generated token: the last row of the source or,
    // if backward, its first row. If ReadingOptions::mask is -1, this row predicts that token.
    std::vector<int> edge_rows_;
};

}  // namespace masquerade
