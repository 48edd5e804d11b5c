// SPDX-License-Identifier: MIT
// The head of a model that inserts words (Stern et al. 2019). A canvas has the words of a target that have been
// inserted so far; its slots are the places where more words can be inserted. p(c,l) is the probability of inserting
// the word c into slot l. It is computed from o_l and o_{l+1}, the last hidden rows of the stack on either side of the
// slot. h_l is the row of slot l, and z_l are the logits of all words in slot l. b, q, P_k, M, W and the matrix V are
// parameters:
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

#include "engine/tensor/numbers.h"
#include "models/batch/batch.h"
#include "models/nets/backbone.h"

namespace masquerade {

struct InsertionHeadOptions {
    bool joint = false, contextual_bias = false;
    // Whether the head maps the hidden rows o_l and o_{l+1} beside slot l to the row of the slot. false: the row of the
    // slot is [o_l o_{l+1}] itself, and the logits are computed with a separate matrix W, not with the word embedding.
    bool projection = true;
    int mixture = 1;  // K, the number of components of the mixture; 1: no mixture
    // Whether the model stores a score for each word; the scores determine the order of insertion
    // (InsertionRule::scores).
    bool scored = false;
    int head_rows() const { return projection ? 2 : 0; }  // BackboneOptions::head_rows of the stack below this head
};

class InsertionHead {
  public:
    // `stack` is the stack that reads the canvases. Its options must have the head_rows() of `options`.
    InsertionHead(Parameters& p, const Backbone& stack, const InsertionHeadOptions& o)
        : options(o), parameters_(p), stack_(stack) {
        const BackboneOptions& b = stack.options;
        const int E = o.projection ? b.embedding_width() : 2 * b.width;
        const Init normal{Init::normal, b.deviation};
        words_ = o.projection ? stack.word_weights() : p.add("slots.words.weight", {b.vocabulary, E}, normal);
        if (!o.joint) query_ = p.add("slots.query.weight", {1, E}, normal);
        if (o.contextual_bias) contextual_ = p.add("slots.contextual.weight", {b.vocabulary, E}, normal);
        if (o.mixture > 1) {
            mixture_ = Linear(p, "slots.mixture", E, o.mixture * E, b.deviation);
            weights_ = Linear(p, "slots.weights", E, o.mixture, b.deviation);
        }
        if (o.scored) scores_ = p.add_state("order.scores", {b.vocabulary}, {Init::zeros});
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
        if (options.projection) h = stack_.head(tape, h);                                 // (M,E): E numbers per slot
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
        return chosen_logits(tape, s.h, words_, stack_.word_bias(), s.bias, tape.ints(*s.documents),
                             tape.ints(slots_of), tape.ints(words), "slots.logits");
    }
    // Returns the logits of all words without the contextual bias, for generation: (M K, V), for M slots, K components
    // of the mixture and V words.
    Tensor* logits(Tape& tape, const Slots& s) const {
        Tensor* each = reshape(tape, s.h, {s.h->rows() * options.mixture, words_->columns()}, "slots.each");
        return linear_unrounded(tape, each, words_, stack_.word_bias(), "slots.all_logits");
    }

    // Returns the loss of each canvas, that is, of each document of the batch (equations 9, 12 and 13 of Stern et al.
    // 2019), and the sum of the losses times `weights`, which has a number for each document. x are the last hidden
    // rows, (N,C). batch.labels.choices contains the words to insert into each slot.
    Backbone::MeanLoss loss(Tape& tape, Tensor* x, const Batch& batch, const Numbers& weights) const {
        const Choices& choices = batch.labels.choices;
        std::vector<int> of;  // the slot of each target
        for (int m = 0; m < batch.labels.size(); m++) of.resize(choices.begin[m + 1], m);
        const Slots s = slots(tape, x, batch);
        const ChosenLogits z = chosen(tape, s, tape.hold(std::move(of)), choices.tokens);
        const DType a = arithmetic_of(tape.dtype);
        Tensor* shares = tape.constant("slots.shares", {choices.size()}, a, choices.shares.data());
        Backbone::MeanLoss mean;
        mean.losses = slot_loss(tape, z, s.mix, s.place, {tape.ints(*s.first), tape.ints(choices.begin), shares},
                                options.joint, "slots.losses");
        mean.total =
            weighted_sum(tape, mean.losses,
                         tape.constant("slots.weights", {std::int64_t(weights.size())}, a, weights.data()), "loss");
        tape.retain(mean.losses);
        tape.retain(mean.total);
        return mean;
    }

    // The scores of all words (InsertionRule::scores), which the optimiser does not train; null if options.scored is
    // false. A checkpoint contains them.
    std::shared_ptr<const Numbers> scores() const {
        if (scores_ && !on_host_) on_host_ = std::make_shared<const Numbers>(numbers_of(parameters_.master(*scores_)));
        return on_host_;
    }
    void set_scores(const Numbers& scores) {
        write_numbers(parameters_.master(*scores_), scores.data());
        on_host_ = nullptr;
    }

    const InsertionHeadOptions options;

  private:
    Parameters& parameters_;
    const Backbone& stack_;
    // Parameters in the formulas at the top of this file. query_ is q, (1,E); contextual_ is V and words_ is W, each
    // (vocabulary,E).
    Tensor *query_ = nullptr, *contextual_ = nullptr, *words_ = nullptr;
    // mixture_ holds the matrices P_k of all K components of the mixture, (K E,E). weights_ holds the matrix M, (K,E),
    // from which the weights pi of the components are computed.
    Linear mixture_, weights_;
    Tensor* scores_ = nullptr;                        // (vocabulary)
    mutable std::shared_ptr<const Numbers> on_host_;  // a copy of scores_; null until scores() makes it
};

}  // namespace masquerade
