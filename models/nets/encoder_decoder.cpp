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

Tensor* EncoderDecoder::encode(Tape& tape, const TokenRows& source, const SegmentGraph& graph, const LayerGraphs& masks,
                               PackedRows* packed) const {
    const auto before = [&](int i, Tensor*&, Pass& pass) { pass.graph = &masks.at(i, graph); };
    Pass pass = encoder.pass(tape, source, graph);
    pass.packed = packed;
    Tensor* x = encoder.run(tape, source, pass, before);
    if (packed) encoder.finish(tape, *packed);
    return encoder.finish(tape, x);
}

Pass EncoderDecoder::decoder_pass(Tape& tape, const TokenRows& rows, const SegmentGraph& graph,
                                  const TokenRows& source, const SegmentGraph& cross_graph) const {
    Pass pass = decoder.pass(tape, rows, graph);
    pass.cross_graph = &cross_graph;
    pass.encoder_positions = tape.ints(source.positions);
    pass.rotates_cross = rotates_cross();
    return pass;
}

Tensor* EncoderDecoder::rows(Tape& tape, const Batch& batch) const {
    PackedRows packed;
    Tensor* read = encode(tape, batch.source, batch.source_graph, batch.source_masks, &packed);  // (Ns,C)
    Pass pass = decoder_pass(tape, batch.rows, batch.graph, batch.source, batch.cross_graph);
    pass.encoder = read;
    pass.packed = &packed;
    const auto before = [&](int i, Tensor*&, Pass& layer) {
        layer.graph = &batch.graph_at(i);
        layer.cross_graph = &batch.cross_masks.at(i, batch.cross_graph);
    };
    return decoder.finish(tape, decoder.run(tape, batch.rows, pass, before));
}

}  // namespace masquerade
