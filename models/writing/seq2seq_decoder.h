// SPDX-License-Identifier: MIT
// Generates targets with an encoder and a decoder. Each source is encoded once. The memory consists of what the
// cross-attention of each decoder layer computes from the encoder's output, such as keys and values.
#pragma once
#include "models/nets/encoder_decoder.h"
#include "models/tasks/objective.h"
#include "models/writing/cached_writer.h"

namespace masquerade {

// Encodes sources. From the encoder's output, computes what the decoder's cross-attention needs, such as keys and
// values, and stores it in the decoding states of the decoder's layers.
class EncoderReader {
  public:
    // `options` are those that were used in training: the segment ids, and the masks that the setting `mask` defines
    // for the encoder and for the decoder. Without masks, every row of the encoder or of the decoder sees the whole
    // source.
    EncoderReader(const EncoderDecoder& model, const ObjectiveOptions& options) : model_(model), options_(options) {}
    void read(Tape& tape, const Sentences& sources, Memory& memory);
    // For models that write texts in any order, and compute all rows of a text in every pass. The functions below read
    // the sources of `memory`, which read() has encoded. Document i of the batch belongs to source sources[i]; the
    // documents are sorted by source, and have no rows for it. attach() must be called before the masks are made, and
    // rows() after that; rows() returns the last hidden states of all N decoder rows, (N,C).
    void attach(Batch& batch, const Memory& memory, const std::vector<int>& sources) const;
    Tensor* rows(Tape& tape, const Batch& batch, const Memory& memory) const;

  private:
    const EncoderDecoder& model_;
    const ObjectiveOptions options_;
    TokenRows rows_;
    SegmentGraph graph_, cross_graph_;
    LayerGraphs graphs_, cross_graphs_;
};

class Seq2SeqDecoder : public SourceReader {
  public:
    // `longest` is the maximum number of tokens of a target.
    Seq2SeqDecoder(const EncoderDecoder& model, const ObjectiveOptions& options, int longest)
        : SourceReader(model.decoder, options.target_type), reader_(model, options), longest_(longest) {}

    // After read(), the first step() feeds the token SearchSource::begin of each source. This token must be [CLS].
    void read(const Sentences& sources, int most_rows) override {
        Memory& memory = start(most_rows, longest_);
        reader_.read(tape(), sources, memory);
    }

  private:
    EncoderReader reader_;
    const int longest_;
};

}  // namespace masquerade
