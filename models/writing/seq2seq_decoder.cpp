// SPDX-License-Identifier: MIT
#include "models/writing/seq2seq_decoder.h"

namespace masquerade {

EncoderReader::EncoderReader(const EncoderDecoder& model, int source_type,
                             std::shared_ptr<const LayerMasks> encoder_masks, std::shared_ptr<const LayerMasks> masks)
    : model_(model), source_type_(source_type), encoder_masks_(std::move(encoder_masks)), masks_(std::move(masks)) {}

void EncoderReader::read(Tape& tape, const std::vector<const Sentence*>& sources, Memory& memory) {
    rows_ = TokenRows();
    Documents documents;
    for (const Sentence* s : sources) {
        const int begin = rows_.count(), n = int(s->ids.size());
        for (int i = 0; i < n; i++) rows_.push(s->ids[std::size_t(i)], source_type_, i, s->name);
        memory.sources.push_back({begin, begin + n, 0, s->name});
        documents.push_back({n, 1});
    }
    cross_graph_ = cross_mask(documents);
    cross_graphs_ = masks_ ? masks_->cross(documents) : LayerGraphs();
    graph_ = full_mask(sources_of(documents));
    if (encoder_masks_) graphs_ = encoder_masks_->graphs(sources_of(documents));
    memory.masks = masks_.get();
    memory.encoder_positions = rows_.positions;
    memory.rotates_cross = model_.rotates_cross();
    const Attention& cross = model_.decoder.layers[0].cross();
    memory.encoder.allocate(model_.decoder, "cache.source", cross.kept_rows(rows_.count(), int(sources.size())), 0,
                            false, true);
    tape.begin("read");
    Pass pass = model_.decoder.pass(tape, rows_, graph_);
    PackedRows packed;
    pass.packed = &packed;
    pass.encoder = model_.encode(tape, rows_, graph_, graphs_, &packed);  // (Ne,C)
    pass.encoder_positions = tape.ints(rows_.positions);
    pass.rotates_cross = memory.rotates_cross;
    for (int i = 0; i < model_.decoder.options.layers; i++) {
        pass.cross_graph = &cross_graphs_.at(i, cross_graph_);
        memory.encoder.keep(tape, i, model_.decoder.layers[std::size_t(i)].kept_encoder(tape, pass));  // (Ne,2C)
    }
    tape.end();
}

}  // namespace masquerade
