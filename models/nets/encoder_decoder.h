// SPDX-License-Identifier: MIT
// The encoder-decoder Transformer (Vaswani et al. 2017) with BERT's layers. The encoder reads the source in both
// directions. Each layer of the decoder attends to the encoder's last hidden state. The mask of the batch decides
// whether the decoder works from left to right or reads its rows in both directions. Both stacks and the head share one
// embedding.
#pragma once
#include "models/nets/target_net.h"

namespace masquerade {

struct EncoderDecoderOptions {
    BackboneOptions stack;  // options of the encoder, and of the decoder except for its number of layers
    int decoder_layers = 6;
    // Whether cross-attention uses rotary positions if self-attention does (BackboneOptions::rotary). The objective
    // `mass` then needs rotary_cross = true: otherwise, the decoder cannot tell where in the sentence the hidden span
    // is.
    bool rotary_cross = true;
};

class EncoderDecoder : public TargetNet {
  public:
    EncoderDecoder(Parameters& p, const EncoderDecoderOptions& o)
        : options(o),
          encoder(Backbone::encoder(p, o.stack)),
          decoder(Backbone::decoder(p, decoder_stack(o), encoder)) {}

    // The output of the encoder, to which the decoder attends. x: the last hidden state, (Ne,C), Ne encoder rows of
    // width C. companion: the second stream of rows that the attention kind Luna passes from layer to layer beside x
    // (class Companion); null without Luna.
    struct Encoded {
        Tensor* x;
        std::shared_ptr<Companion> companion;
    };
    Encoded encode(Tape& tape, const TokenRows& source, const SegmentGraph& graph,
                   const LayerGraphs& masks = {}) const {
        const auto before = [&](int i, Tensor*&, Pass& pass) { pass.graph = &masks.at(i, graph); };
        const Pass pass = encoder.pass(tape, source, graph);
        Tensor* x = encoder.run(tape, source, pass, before);
        if (pass.companion && options.stack.pre_norm) pass.companion->norm(tape, "encoder.final_norm_packed");
        return {encoder.finish(tape, x), pass.companion};
    }
    bool rotates_cross() const { return options.rotary_cross && options.stack.rotary; }
    // Returns what the decoder's layers need to know about the decoder rows `rows` (struct Pass). `source` are the rows
    // of the encoder, and `read` is the result of encode() for `source`.
    Pass decoder_pass(Tape& tape, const TokenRows& rows, const SegmentGraph& graph, const TokenRows& source,
                      const Encoded& read, const SegmentGraph& cross_graph) const {
        Pass pass = decoder.pass(tape, rows, graph);
        pass.encoder = read.x;
        pass.companion = read.companion;
        pass.cross_graph = &cross_graph;
        pass.encoder_positions = tape.ints(source.positions);
        pass.rotates_cross = rotates_cross();
        return pass;
    }
    // Encodes batch.source and runs the decoder on batch.rows. Returns the last hidden state of the decoder, (N,C): N
    // decoder rows of width C.
    Tensor* rows(Tape& tape, const Batch& batch) const {
        const Encoded read = encode(tape, batch.source, batch.source_graph, batch.source_masks);
        const Pass pass = decoder_pass(tape, batch.rows, batch.graph, batch.source, read, batch.cross_graph);
        const auto before = [&](int i, Tensor*&, Pass& layer) {
            layer.graph = &batch.graph_at(i);
            layer.cross_graph = &batch.cross_masks.at(i, batch.cross_graph);
        };
        return decoder.finish(tape, decoder.run(tape, batch.rows, pass, before));
    }
    Tensor* hidden(Tape& tape, const Batch& batch) const override {
        Tensor* x = rows(tape, batch);
        // Objectives such as seq2seq label every row, so the rows need not be copied.
        const bool all = batch.labels.size() == batch.rows.count();
        return decoder.head(tape, all ? x : gather_rows(tape, x, tape.ints(batch.labels.rows), "scored"));
    }
    const Backbone& head_stack() const override { return decoder; }
    const EncoderDecoder* two_stacks() const override { return this; }

    const EncoderDecoderOptions options;
    Backbone encoder, decoder;

  private:
    static BackboneOptions decoder_stack(const EncoderDecoderOptions& o) {
        BackboneOptions stack = o.stack;
        stack.layers = o.decoder_layers;
        return stack;
    }
};

}  // namespace masquerade
