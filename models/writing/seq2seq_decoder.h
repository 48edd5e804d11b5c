// SPDX-License-Identifier: MIT
// Writes targets with two stacks: every source is encoded once. The memory is what the decoder's layers look at of a
// source: a key and a value a token.
#pragma once
#include "models/nets/encoder_decoder.h"
#include "models/writing/cached_writer.h"

namespace masquerade {

// Reads sources with the encoder: a memory of the keys that the decoder's layers keep of them.
class EncoderReader {
  public:
    // Masks in words, as in training; null: none.
    EncoderReader(const EncoderDecoder& model, int source_type, std::shared_ptr<const LayerMasks> encoder_masks,
                  std::shared_ptr<const LayerMasks> masks);
    void read(Tape& tape, const std::vector<const Sentence*>& sources, Memory& memory);

  private:
    const EncoderDecoder& model_;
    const int source_type_;
    const std::shared_ptr<const LayerMasks> encoder_masks_, masks_;
    TokenRows rows_;
    SegmentGraph graph_, cross_graph_;
    LayerGraphs graphs_, cross_graphs_;
};

class Seq2SeqDecoder : public SourceReader {
  public:
    // Segment ids as in training; `longest`: tokens of a target, at most.
    Seq2SeqDecoder(const EncoderDecoder& model, int source_type, int target_type, int longest,
                   std::shared_ptr<const LayerMasks> encoder_masks = nullptr,
                   std::shared_ptr<const LayerMasks> masks = nullptr)
        : SourceReader(model.decoder, target_type),
          reader_(model, source_type, std::move(encoder_masks), std::move(masks)),
          longest_(longest) {}

    // After it the first step() feeds [CLS], as the `begin` of every source, and so on.
    void read(const std::vector<const Sentence*>& sources, int most_rows) override {
        Memory& memory = start(most_rows, longest_);
        reader_.read(tape(), sources, memory);
    }

  private:
    EncoderReader reader_;
    const int longest_;
};

}  // namespace masquerade
