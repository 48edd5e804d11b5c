// SPDX-License-Identifier: MIT
#include "models/nets/encoder_decoder.h"

namespace masquerade {
namespace {

BackboneOptions decoder_stack(const EncoderDecoderOptions& o) {
    BackboneOptions decoder = o.stack;
    decoder.layers = o.decoder_layers;
    return decoder;
}

}  // namespace

EncoderDecoder::EncoderDecoder(Parameters& p, const EncoderDecoderOptions& o)
    : options(o),
      encoder(Backbone::encoder(p, o.stack)),
      decoder(Backbone::decoder(p, decoder_stack(o), encoder)) {}

Tensor* EncoderDecoder::encode(Tape& tape, const TokenRows& source, const SegmentGraph& graph, const LayerGraphs& masks) const {
    const auto before = [&](int i, Tensor*&, Pass& pass) { pass.graph = &masks.at(i, graph); };
    return encoder.finish(tape, encoder.run(tape, source, encoder.pass(tape, source, graph), before));
}

Pass EncoderDecoder::decoder_pass(Tape& tape, const TokenRows& rows, const SegmentGraph& graph,
                                  const TokenRows& source, const SegmentGraph& cross_graph) const {
    Pass pass = decoder.pass(tape, rows, graph);
    pass.cross_graph = &cross_graph;
    if (rotates_cross()) pass.encoder_positions = tape.ints(source.positions);
    return pass;
}

Tensor* EncoderDecoder::hidden(Tape& tape, const Batch& batch) const {
    Tensor* read = encode(tape, batch.source, batch.source_graph, batch.source_masks);  // (Ns,C)
    Pass pass = decoder_pass(tape, batch.rows, batch.graph, batch.source, batch.cross_graph);
    pass.encoder = read;
    const auto before = [&](int i, Tensor*&, Pass& layer) {
        layer.graph = &batch.graph_at(i);
        layer.cross_graph = &batch.cross_masks.at(i, batch.cross_graph);
    };
    return decoder.head(tape, decoder.finish(tape, decoder.run(tape, batch.rows, pass, before)));
}

}  // namespace masquerade
