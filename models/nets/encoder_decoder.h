// SPDX-License-Identifier: MIT
// The Transformer of two stacks (Vaswani et al. 2017) with the layers of BERT: an encoder reads the source in both
// directions; a decoder writes from left to right, and every layer of it attends to the encoder's last hidden state. One
// embedding serves both and the head.
#pragma once
#include "models/nets/target_net.h"

namespace masquerade {

struct EncoderDecoderOptions {
    BackboneOptions stack;  // of the encoder
    int decoder_layers = 6;
    // With rotary positions: whether cross-attention knows how far apart two tokens stand. mass needs it, as nothing else
    // says where a span stands in its sentence.
    bool rotary_cross = true;
};

class EncoderDecoder : public TargetNet {
  public:
    EncoderDecoder(Parameters& parameters, const EncoderDecoderOptions& options);

    // The last hidden state of the encoder: (Ne,C).
    // `packed`, if not null, receives its packed rows, where its attention has them.
    Tensor* encode(Tape& tape, const TokenRows& source, const SegmentGraph& graph, const LayerGraphs& masks = {},
                   PackedRows* packed = nullptr) const;
    bool rotates_cross() const { return options.rotary_cross && options.stack.rotary; }
    // Makes all that the decoder's layers need to know of these rows; `source` are the encoder's rows.
    Pass decoder_pass(Tape& tape, const TokenRows& rows, const SegmentGraph& graph, const TokenRows& source,
                      const SegmentGraph& cross_graph) const;
    // The last hidden state of the decoder: (N,C).
    Tensor* rows(Tape& tape, const Batch& batch) const;
    // Every row of the decoder is asked.
    Tensor* hidden(Tape& tape, const Batch& batch) const override { return decoder.head(tape, rows(tape, batch)); }
    const Backbone& head_stack() const override { return decoder; }

    const EncoderDecoderOptions options;
    Backbone encoder, decoder;
};

}  // namespace masquerade
