// SPDX-License-Identifier: MIT
// The Insertion Transformer (Stern et al. 2019): p(c,l), to insert the word c in slot l of a canvas, from the hidden rows
// o_l and o_{l+1} on either side of the slot. The rows are those of a decoder that sees all of its canvas and the encoder, or of
// one stack that reads the source as well.
//
//   h_l = head([o_l o_{l+1}])                         z_l = h_l W + b     W the embedding of words
//   joint          p(c,l) = softmax over all slots and words of z
//   factorised     p(c,l) = softmax_c(z_l) softmax_l(q . h_l)
//   contextual     z_l += g V,  g = max_l h_l                                                        equations 5 to 8
//   mixture of K   softmax_c(z_l) = sum_k pi_k softmax_c(tanh(P_k h_l) W + b),  pi = softmax(M h_l)    Yang et al. 2018
//                  jointly pi = softmax(M g): then p(c,l) sums to 1
#pragma once
#include <memory>

#include "models/nets/encoder_decoder.h"

namespace masquerade {

struct InsertionOptions {
    EncoderDecoderOptions stacks;  // of one stack, the encoder's layers alone
    bool one_stack = false;
    bool joint = false, contextual_bias = false;
    bool projection = true;  // false: h_l is [o_l o_{l+1}] itself, W a matrix of its own
    int mixture = 1;         // K
    bool scored = false;     // words have numbers that say in which order they are inserted
};

class InsertionTransformer : public TargetNet {
  public:
    InsertionTransformer(Parameters& parameters, const InsertionOptions& options);

    // The last hidden rows of the stack that reads canvases: (N,C).
    Tensor* rows(Tape& tape, const Batch& batch) const;
    // The scores of words and places at the slots of a batch; documents are the canvases and, if there are, inert ones.
    struct Slots {
        Tensor* h;                // (M, K E)
        Tensor* bias = nullptr;   // (documents, V) of contextual_bias
        Tensor* mix = nullptr;    // (M,K) or, jointly, (documents,K) of a mixture
        Tensor* place = nullptr;  // (M) unless joint
        const std::vector<int>* first = nullptr;      // (documents+1) slots of document g: [first[g], first[g+1])
        const std::vector<int>* documents = nullptr;  // (M)
    };
    Slots slots(Tape& tape, Tensor* rows, const Batch& batch) const;
    // z (J,K) of chosen words of slots, and the log of the sum of exp of all, (M,K).
    ChosenLogits chosen(Tape& tape, const Slots& slots, const std::vector<int>& of, const std::vector<int>& words) const;
    Tensor* logits(Tape& tape, const Slots& slots) const;  // (M K, V) without the bias, for writing

    Tensor* hidden(Tape& tape, const Batch& batch) const override { return slots(tape, rows(tape, batch), batch).h; }
    const Backbone& head_stack() const override { return one_ ? *one_ : two_->decoder; }
    // The mean over canvases of what their slots cost, by their choices.      equations 9, 12 and 13
    Backbone::MeanLoss loss(Tape& tape, const Batch& batch, double smoothing = 0) const override;
    Losses losses(Tape& tape, const Batch& batch) const override { return {loss(tape, batch).losses, batch.documents}; }

    const EncoderDecoder* two_stacks() const { return two_.get(); }  // null: one stack

    const InsertionOptions options;
    Tensor* const scores;  // (V) a state, or null

  private:
    std::unique_ptr<EncoderDecoder> two_;
    std::unique_ptr<Backbone> one_;
    Tensor *query_ = nullptr, *contextual_ = nullptr, *words_ = nullptr;  // q (1,E), V (V,E), W (V,E)
    Linear mixture_, weights_;                                            // P (K E,E), M (K,E)
};

}  // namespace masquerade
