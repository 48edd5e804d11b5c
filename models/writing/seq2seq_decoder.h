// SPDX-License-Identifier: MIT
// Writing by two stacks, many prefixes at a time. Every source is encoded once; what the decoder's layers look at of it, a
// key and a value a token, is shared by all its prefixes. What is written this way has the bits of a pass over the whole.
#pragma once
#include "models/writing/target_cache.h"
#include "models/nets/encoder_decoder.h"

namespace masquerade {

class Seq2SeqDecoder : public SourceReader {
  public:
    // Segment ids as in training; `longest`: tokens of a target, at most.
    Seq2SeqDecoder(const EncoderDecoder& model, int source_type, int target_type, int longest);

    void read(const std::vector<const Sentence*>& sources, int most_rows) override;
    int vocabulary() const override { return model_.decoder.options.vocabulary; }
    // The first call feeds [CLS], as the `begin` of every source, and so on.
    const float* step(const std::vector<Row>& rows) override;

  private:
    View feed(const std::vector<Row>& rows);

    const EncoderDecoder& model_;
    const int source_type_, target_type_, longest_;
    Arena arena_;
    Tape tape_;
    KeptKeys sources_;  // of the cross-attention
    TargetCache cache_;
    Documents read_;          // the sources, without targets
    std::vector<int> names_;  // of the sources
    std::vector<float> logits_;
    // what the ops of a step read
    TokenRows source_rows_, rows_;
    SegmentGraph source_graph_, graph_, cross_graph_;
    std::vector<int> write_rows_;
};

}  // namespace masquerade
