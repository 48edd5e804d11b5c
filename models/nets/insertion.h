// SPDX-License-Identifier: MIT
// The Insertion Transformer (Stern et al. 2019). A canvas has the words of a target that have been inserted so far; its
// slots are the places where more words can be inserted. p(c,l) is the probability of inserting the word c into
// slot l. It is computed from the hidden rows o_l and o_{l+1} on either side of the slot. These are rows of a decoder
// that sees its whole canvas and the encoder, or of one stack that reads both source and canvas. h_l is the row of
// slot l, and z_l are the logits of all words in slot l. b, q, P_k, M, W and the matrix V are parameters:
//
//   h_l = head([o_l o_{l+1}])                         z_l = h_l W + b     W: the word embedding
//   joint          p(c,l) = softmax of z over all slots and words                                          equation 2
//   factorised     p(c,l) = softmax_c(z_l) softmax_l(q . h_l)                                        equations 3 and 4
//                  softmax_c: over all words; softmax_l: over all slots
//   contextual     adds g V to every z_l, where g = max_l h_l, elementwise                           equations 5 to 8
//   mixture of K   softmax_c(z_l) = sum_k pi_k softmax_c(tanh(P_k h_l) W + b),  pi = softmax(M h_l)    Yang et al. 2018
//                  if joint, pi = softmax(M g), so that p(c,l) sums to 1
#pragma once
#include <memory>

#include "models/nets/encoder_decoder.h"

namespace masquerade {

struct InsertionOptions {
    EncoderDecoderOptions stacks;  // if one_stack, only stacks.stack is used
    bool one_stack = false;
    bool joint = false, contextual_bias = false;
    // Whether the head maps the hidden rows o_l and o_{l+1} beside slot l to the row of the slot. false: the row of the
    // slot is [o_l o_{l+1}] itself, and the logits are computed with a separate matrix W, not with the word embedding.
    bool projection = true;
    int mixture = 1;  // K, the number of components of the mixture; 1: no mixture
    // Whether the model stores a score for each word; the scores determine the order of insertion
    // (InsertionRule::scores).
    bool scored = false;
};

class InsertionTransformer : public TargetNet {
  public:
    InsertionTransformer(Parameters& p, const InsertionOptions& o)
        : options(o),
          scores(o.scored ? p.add_state("order.scores", {o.stacks.stack.vocabulary}, {Init::zeros}) : nullptr) {
        EncoderDecoderOptions stacks = o.stacks;
        stacks.stack.head_rows = o.projection ? 2 : 0;
        if (o.one_stack)
            one_ = std::make_unique<Backbone>(p, stacks.stack);
        else
            two_ = std::make_unique<EncoderDecoder>(p, stacks);
        const BackboneOptions& b = stacks.stack;
        const int E = o.projection ? b.embedding_width() : 2 * b.width;
        const Init normal{Init::normal, b.deviation};
        words_ = o.projection ? head_stack().word_weights() : p.add("slots.words.weight", {b.vocabulary, E}, normal);
        if (!o.joint) query_ = p.add("slots.query.weight", {1, E}, normal);
        if (o.contextual_bias) contextual_ = p.add("slots.contextual.weight", {b.vocabulary, E}, normal);
        if (o.mixture > 1) {
            mixture_ = Linear(p, "slots.mixture", E, o.mixture * E, b.deviation);
            weights_ = Linear(p, "slots.weights", E, o.mixture, b.deviation);
        }
    }

    // Returns the last hidden state of the stack that reads the canvases, (N,C): N rows of width C.
    Tensor* rows(Tape& tape, const Batch& batch) const {
        if (two_) return two_->rows(tape, batch);
        const std::vector<char> parts = parts_of_rows(batch.parts);
        const auto before = [&](int i, Tensor*&, Pass& pass) {
            pass.graph = &batch.graph_at(i);
            pass.parts = &parts;
        };
        return one_->finish(tape, one_->run(tape, batch.rows, one_->pass(tape, batch.rows, batch.graph), before));
    }
    // The tensors from which the probabilities of words and slots are computed, for the M slots of a batch. A slot is a
    // place where words can be inserted. Each document of the batch is a canvas (the words inserted so far) or
    // padding without effect.
    struct Slots {
        Tensor* h;                // (M, K E): for each slot, E numbers for each of the K components of the mixture
        Tensor* bias = nullptr;   // (documents, V words): bias of the logits of all slots of a document; null: none
        Tensor* mix = nullptr;    // logits of the mixture weights pi: (M,K), or (documents,K) if joint; null if K = 1
        Tensor* place = nullptr;  // (M) the logit of each slot, q . h_l with the parameter q; null if joint
        const std::vector<int>* first = nullptr;      // (documents+1) document g has the slots first[g] .. first[g+1]-1
        const std::vector<int>* documents = nullptr;  // for each of the M slots, the index of its document
    };
    Slots slots(Tape& tape, Tensor* x, const Batch& batch) const {
        const int K = options.mixture, N = x->rows();
        std::vector<int> right, first = batch.labels.begin, documents;
        // The last row, N - 1, has no right neighbour, so row 0 is used instead. This has no effect on the loss,
        // because only padding can have a label at row N - 1.
        for (int row : batch.labels.rows) right.push_back(row + 1 < N ? row + 1 : 0);
        first.resize(batch.parts.size() + 1, batch.labels.size());
        for (std::size_t g = 0; g + 1 < first.size(); g++)
            documents.insert(documents.end(), first[g + 1] - first[g], g);
        Slots s;
        s.first = &tape.hold(std::move(first));
        s.documents = &tape.hold(std::move(documents));
        Tensor* h = side_by_side(tape, x, batch.labels.rows, std::move(right), "slots");  // (M,2C), for M slots
        if (options.projection) h = head_stack().head(tape, h);                           // (M,E): E numbers per slot
        auto scope = tape.scope("slots");
        Tensor* g = nullptr;  // (documents,E), the elementwise maximum over the slots of each document
        if (options.contextual_bias || (options.joint && K > 1)) g = max_rows(tape, h, tape.ints(*s.first), "pooled");
        if (options.contextual_bias) s.bias = linear_unrounded(tape, g, contextual_, nullptr, "contextual");
        if (!options.joint)
            s.place = reshape(tape, linear_unrounded(tape, h, query_, nullptr, "query"), {h->rows()}, "place");
        s.h = h;
        if (K == 1) return s;
        s.mix = linear_unrounded(tape, options.joint ? g : h, weights_.weight, weights_.bias, "weights");
        s.h = tanh(tape, mixture_(tape, h, "mixture"), "tanh");  // (M,K E): K times E numbers per slot
        return s;
    }
    // There are J choices. Choice j means that word words[j] is inserted into slot slots_of[j]. Returns two tensors,
    // with one column per component of the mixture: the logits of all choices, (J,K), and the log-sum-exp of the logits
    // of all words in each of the M slots, (M,K).
    ChosenLogits chosen(Tape& tape, const Slots& s, const std::vector<int>& slots_of,
                        const std::vector<int>& words) const {
        return chosen_logits(tape, s.h, words_, head_stack().word_bias(), s.bias, tape.ints(*s.documents),
                             tape.ints(slots_of), tape.ints(words), "slots.logits");
    }
    // Returns the logits of all words without the contextual bias, for generation: (M K, V), for M slots, K components
    // of the mixture and V words.
    Tensor* logits(Tape& tape, const Slots& s) const {
        Tensor* each = reshape(tape, s.h, {s.h->rows() * options.mixture, words_->columns()}, "slots.each");
        return linear_unrounded(tape, each, words_, head_stack().word_bias(), "slots.all_logits");
    }

    Tensor* hidden(Tape& tape, const Batch& batch) const override { return slots(tape, rows(tape, batch), batch).h; }
    const Backbone& head_stack() const override { return one_ ? *one_ : two_->decoder; }
    // Returns the mean loss per canvas, that is, per document (equations 9, 12 and 13 of Stern et al. 2019).
    // batch.labels.choices contains the words to insert into each slot.
    Backbone::MeanLoss loss(Tape& tape, const Batch& batch, double /*smoothing*/ = 0) const override {
        const Choices& choices = batch.labels.choices;
        std::vector<int> of;  // the slot of each target
        for (int m = 0; m < batch.labels.size(); m++) of.resize(choices.begin[m + 1], m);
        const Slots s = slots(tape, rows(tape, batch), batch);
        const ChosenLogits z = chosen(tape, s, tape.hold(std::move(of)), choices.tokens);
        const DType a = arithmetic_of(tape.dtype);
        Tensor* shares = tape.constant("slots.shares", {choices.size()}, a, choices.shares.data());
        Backbone::MeanLoss mean;
        mean.losses = slot_loss(tape, z, s.mix, s.place, {tape.ints(*s.first), tape.ints(choices.begin), shares},
                                options.joint, "slots.losses");
        std::vector<double> weights(batch.parts.size(), 0);
        std::fill_n(weights.begin(), batch.documents, 1.0 / batch.documents);
        mean.total =
            weighted_sum(tape, mean.losses,
                         tape.constant("slots.weights", {std::int64_t(weights.size())}, a, weights.data()), "loss");
        tape.retain(mean.losses);
        tape.retain(mean.total);
        return mean;
    }
    Losses losses(Tape& tape, const Batch& batch) const override { return {loss(tape, batch).losses, batch.documents}; }

    const EncoderDecoder* two_stacks() const { return two_.get(); }  // null if the model has one stack

    const InsertionOptions options;
    Tensor* const scores;  // (V) score of each word, not trained by the optimiser; null if options.scored is false

  private:
    std::unique_ptr<EncoderDecoder> two_;
    std::unique_ptr<Backbone> one_;
    // Parameters in the formulas at the top of this file. query_ is q, (1,E); contextual_ is V and words_ is W, each
    // (vocabulary,E).
    Tensor *query_ = nullptr, *contextual_ = nullptr, *words_ = nullptr;
    // mixture_ holds the matrices P_k of all K components of the mixture, (K E,E). weights_ holds the matrix M, (K,E),
    // from which the weights pi of the components are computed.
    Linear mixture_, weights_;
};

}  // namespace masquerade
