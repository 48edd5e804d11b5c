// SPDX-License-Identifier: MIT
#include "models/writing/seq2seq_decoder.h"

namespace masquerade {

void EncoderReader::read(Tape& tape, const Sentences& sources, Memory& memory) {
    rows_ = TokenRows();
    Documents documents;
    for (const Sentence* s : sources) {
        const int begin = rows_.count(), n = s->ids.size();
        rows_.push_text(s->ids, options_.source_type, 0, s->name);
        memory.sources.push_back({begin, begin + n, 0, s->name});
        documents.push_back({n, 1});
    }
    cross_graph_ = cross_mask(documents);
    cross_graphs_ = options_.masks ? options_.masks->cross(documents) : LayerGraphs();
    graph_ = full_mask(sources_of(documents));
    if (options_.encoder_masks) graphs_ = options_.encoder_masks->graphs(sources_of(documents));
    memory.masks = options_.masks.get();
    memory.rotates_cross = model_.rotates_cross();
    const std::vector<Block>& layers = model_.decoder.layers;
    if (memory.layers.empty()) memory.layers = model_.decoder.states({});
    tape.begin("read");
    const EncoderDecoder::Encoded read = model_.encode(tape, rows_, graph_, graphs_);
    Pass pass = model_.decoder_pass(tape, rows_, graph_, rows_, read, cross_graph_);
    for (std::size_t i = 0; i < layers.size(); i++) {
        pass.cross_graph = &cross_graphs_.at(int(i), cross_graph_);
        pass.state = &memory.layers[i];
        layers[i].read_encoder(tape, pass);
    }
    tape.end();
}

void EncoderReader::attach(Batch& batch, const Memory& memory, const std::vector<int>& sources) const {
    batch.shared.clear();
    for (const Memory::Source& s : memory.sources) batch.shared.push_back({s.end - s.begin, 0});
    for (std::size_t i = 0; i < sources.size(); i++) batch.shared[sources[i]].target += batch.parts[i].target;
}

Tensor* EncoderReader::rows(Tape& tape, const Batch& batch, const Memory& memory) const {
    const Backbone& decoder = model_.decoder;
    Pass pass = decoder.pass(tape, batch.rows, batch.graph);
    pass.rotates_cross = memory.rotates_cross;
    return decoder.finish(tape, decoder.run(tape, batch.rows, pass, [&](int i, Tensor*&, Pass& layer) {
        layer.state = &memory.layers[i];
        layer.graph = &batch.graph_at(i);
        layer.cross_graph = &batch.cross_masks.at(i, batch.cross_graph);
    }));
}

}  // namespace masquerade
