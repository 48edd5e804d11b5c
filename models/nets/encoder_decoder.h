// SPDX-License-Identifier: MIT
// The Transformer of two stacks (Vaswani et al. 2017) with the layers of BERT: an encoder reads the source in both
// directions; a decoder writes from left to right, and every layer of it attends to the encoder's last hidden state. One
// embedding serves both and the head.
#pragma once
#include "models/batch/batch.h"
#include "models/nets/backbone.h"

namespace masquerade {

struct EncoderDecoderOptions {
    BackboneOptions stack;  // of the encoder
    int decoder_layers = 6;
    // With rotary positions: whether cross-attention knows how far apart two tokens stand. mass needs it, as nothing else
    // says where a span stands in its sentence.
    bool rotary_cross = true;
};

class EncoderDecoder {
  public:
    EncoderDecoder(Parameters& parameters, const EncoderDecoderOptions& options);

    // The last hidden state of the encoder: (Ne,C).
    Tensor* encode(Tape& tape, const TokenRows& source, const SegmentGraph& graph) const;
    bool rotates_cross() const { return options.rotary_cross && options.stack.rotary; }
    // What the decoder's layers need to know of these rows; `source` are the encoder's.
    Pass decoder_pass(Tape& tape, const TokenRows& target, const SegmentGraph& graph, const TokenRows& source,
                      const SegmentGraph& cross_graph) const;
    // What the tied embedding meets for every row of the decoder: (Nd,C).
    Tensor* hidden(Tape& tape, const PairBatch& batch) const;

    Backbone::MeanLoss loss(Tape& tape, const PairBatch& batch, double smoothing = 0) const;

    const Backbone& head_stack() const { return decoder; }  // the one that predicts

    const EncoderDecoderOptions options;
    Backbone encoder, decoder;
};

}  // namespace masquerade
