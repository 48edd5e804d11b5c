// SPDX-License-Identifier: MIT
// Computes the logits of hidden places with a model that was trained with objective=diffusion, block-diffusion or
// any-order, for many canvases at a time. The rows and the masks are those of training. In blocks, all asked places of
// a canvas must lie in the same block; the places behind this block have no rows.
//
// The source is read once. A pass computes the rows of the hidden block and, if they are new, those of the blocks
// before it. The keys and values of the source and of finished blocks are kept, like those of the prefix in
// CachedWriter. The logits are bit-identical to those of a pass that computes all rows. If a kind of attention does not
// keep keys row by row, if the source sees the canvas, or with any-order, every pass computes all rows.
#pragma once
#include "models/writing/canvas_decoder.h"
#include "models/writing/unmask.h"

namespace masquerade {

class UnmaskDecoder : public PlaceModel, private CanvasDecoder {
  public:
    // `options` are the options of `objective` that were used in training. `text`: whether the places belong to a text,
    // which is the target of [CLS] and has the segment id of a source; otherwise, to the target of a pair.
    UnmaskDecoder(const TargetNet& net, const Objective& objective, const ObjectiveOptions& options, bool text);
    // Reads the sources: MaskedCanvas::source is an index into `sources`. If `text`, only their [CLS] is read. The
    // canvases that follow have numbers below `canvases`, at most `places` places, and are sorted by source.
    void read(const Sentences& sources, int canvases, int places);
    int vocabulary() const override { return net_.head_stack().options.vocabulary; }
    const float* logits(const MaskedCanvases& canvases) override;
    // For an objective with the trait `counts`. left[i] is the text of sentence i without its missing tokens. Returns,
    // for each token of left[i] and for the token `end` behind it, the logits of the number 0, 1, .. of tokens missing
    // directly before it. Does not use or change what read() stored.
    std::vector<Vectors> missing(const Sentences& sentences, const Texts& left, int end);

    int rows() const { return batch_rows_; }  // how many rows the last pass computed

    bool cache = true;  // false: every pass computes all rows; call read() after a change

  private:
    Example example(const MaskedCanvas& canvas) const;
    Example streams(const MaskedCanvas& canvas) const;
    int context(int source) const { return text_ ? 1 : int(sources_.at(source)->ids.size()); }
    int first_asked(const MaskedCanvas& canvas) const;
    void read_contexts();
    Tensor* new_rows(const Batch& batch, const MaskedCanvases& canvases);

    const bool text_;
    Slots slots_;  // with one stack, memory_ has the decoding states of the sources and of the finished blocks
    Texts kept_;   // for each canvas, the tokens of the finished blocks whose keys are kept
    // Inputs of the ops of a pass, which must stay unchanged until it ends.
    Batch batch_;
    TokenRows rows_;
    LayerGraphs graphs_;
    SegmentGraph labelled_graph_;  // of the last layer, whose only queries are the labelled rows
    std::vector<float> logits_;
    int batch_rows_ = 0;
};

}  // namespace masquerade
