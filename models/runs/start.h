// SPDX-License-Identifier: MIT
// The start of a new run from the weights, sizes and vocabulary of another run or of a Hugging Face checkpoint (BERT,
// RoFormer or NomicBERT). A part that is called new below is not copied but initialised at random.
//
//   from one stack (univae, unilm, classify, insertion-one-stack, kermit, BERT)
//     to one stack     all weights of the new model are copied. Latents, and the slots of insertion models, are new if
//                      the old weights have none of the same shape. If the new model has another kind of attention, it
//                      takes the parameters of the same role (AttentionKind::role); the others are new
//     to two stacks    encoder and decoder both copy the layers; cross-attention is new               Rothe et al. 2020
//   from two stacks (seq2seq, insertion)
//     to two stacks    all weights of the new model are copied. Slots and attention may be new, as from one stack to
//                      one stack
#pragma once
#include "models/runs/hugging_face/token_choice.h"
#include "models/runs/run.h"

namespace masquerade {

class Start {
  public:
    virtual ~Start() = default;
    virtual std::string source() const = 0;  // the path of the weights, which run.json stores
    WordPiece tokenizer() const;
    // Restricts the vocabulary to the tokens that occur in the text, the special tokens and the added tokens, as
    // keep_tokens of bert4keras does.
    void keep(const TrainingText& text);
    // Replaces the vocabulary by the words of the task, or adds the answers, of `settings`. Tokens that the weights know
    // keep their rows of the embedding. Rows of new tokens are initialised at random and scaled to the RMS of the known
    // rows. If the weights have a token that is not a word of the task, throws BadInput or, if takes_any_stack(), leaves
    // out its row. In this case, and if the weights know none of the answers, the head is new. `task` names the task.
    void extend(const RunSettings& settings, const std::string& task);
    // Sets the sizes in `settings` to those of the weights, and also how text is read: from a run, with
    // RunSettings::adopt_reading(); from a Hugging Face checkpoint, only `cased`.
    virtual void adopt(RunSettings& settings) const = 0;
    // Copies the weights into the run. Returns a description of the parts that were copied, of those that are new, and
    // of those that are left out because the run has no place for them. If trained parameters of attention are among
    // these, sets `warning`, unless it is null. The run may have fewer layers than the weights. If its kind of attention
    // cannot rotate, it may have a table of positions instead of rotary positions. Throws BadInput if any other size
    // differs.
    std::string give_weights(Run& run, std::string* warning = nullptr) const;

    // Opens the folder of a run or of a Hugging Face checkpoint. Throws BadInput if the folder is neither.
    static std::unique_ptr<Start> open(const std::string& path);

  protected:
    virtual WordPiece all_tokens() const = 0;
    virtual const Parameters& weights() const = 0;
    virtual Stacks stacks() const = 0;
    virtual bool has_head() const { return true; }

  private:
    bool gives_head() const { return has_head() && !new_head_; }
    void expect_same_sizes(const Stacks& ours) const;
    void expect_layers(const char* key, int wanted, int there) const;
    // Copies a tensor of the weights. If each of its rows belongs to a token, copies by the choice of keep() or
    // extend().
    void copy_of(const Tensor& given, const View& to) const;
    void copy_known(const View& from, const View& to) const;

    std::optional<ChosenTokens> chosen_;
    std::optional<Vocabulary> extended_;
    bool new_head_ = false;  // whether extend() found that the head is of no use
};

}  // namespace masquerade
