// SPDX-License-Identifier: MIT
// The start of a new run from the weights, sizes and vocabulary of another run or of a Hugging Face checkpoint (BERT,
// RoFormer or NomicBERT). Below, "new" means: not copied, but initialised at random.
//
//   from one stack (univae, unilm, classify, insertion-one-stack, kermit, BERT)
//     to one stack     all weights of the new model are copied, with two exceptions. Latents, and the parameters for
//                      the slots of insertion models, are new if the old weights have none of the same shape. If the
//                      kind of attention differs, an attention parameter is copied from the old parameter with the
//                      same role (AttentionKind::role), and is new if there is no such parameter
//     to two stacks    encoder and decoder both copy the layers; cross-attention is new               Rothe et al. 2020
//   from two stacks (seq2seq, insertion)
//     to two stacks    all weights of the new model are copied, with the same exceptions for slots and attention as
//                      from one stack to one stack
#pragma once
#include "models/runs/hugging_face/token_choice.h"
#include "models/runs/run.h"

namespace masquerade {

// Whether the folder is a run or one of its steps, and not a Hugging Face checkpoint.
bool is_run(const std::string& path);

class Start {
  public:
    virtual ~Start() = default;
    virtual std::string source() const = 0;  // the path of the weights, which run.json stores
    WordPiece tokenizer() const;
    // Restricts the vocabulary to the special tokens, the added tokens and all tokens that occur in the text, as
    // keep_tokens of bert4keras does.
    void keep(const TrainingText& text);
    // Replaces the vocabulary by settings.words() or, if there are none, adds settings.answers() to the vocabulary.
    // Tokens that the old vocabulary has keep their rows of the embedding. Rows of further tokens are initialised at
    // random and scaled to the RMS of the old rows. If the old vocabulary has a token that is not in words(), throws
    // BadInput or, if settings.takes_any_stack(), drops the token's row. If a row was dropped, or if there are answers
    // and the old vocabulary has none of them, the head is not copied but initialised at random. `task` is the name of
    // the task in messages.
    void extend(const RunSettings& settings, const std::string& task);
    // Sets the sizes in `settings` to the sizes of the weights. Also copies the settings that define how text is read:
    // from a run, with RunSettings::adopt_reading(); from a Hugging Face checkpoint, only `cased`.
    virtual void adopt(RunSettings& settings) const = 0;
    // Copies the weights into the run. Returns a text for the user that lists three kinds of parts: copied, initialised
    // at random, and left out because the run has no such parameters. If trained attention parameters were left out,
    // logs a warning. Two differences are allowed: the run may have fewer layers than the weights, and a run whose kind
    // of attention does not support rotary positions may have a position table instead. Throws BadInput if any other
    // size differs.
    std::string give_weights(Run& run) const;

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
    // Copies the tensor `given` of the weights to `to`. If each row of the tensor belongs to a token, copies only the
    // rows of the tokens that keep() or extend() kept.
    void copy_of(const Tensor& given, const View& to) const;
    void copy_tokens(const View& from, const View& to) const;

    std::optional<Vocabulary> vocabulary_;  // that of the new model, if keep() or extend() has changed it
    bool kept_ = false;                     // whether keep() has chosen it
    bool new_head_ = false;                 // whether extend() decided not to copy the head
};

}  // namespace masquerade
