// SPDX-License-Identifier: MIT
// The start of a new run from the weights, sizes and vocabulary of another run or of a Hugging Face checkpoint (BERT,
// RoFormer or NomicBERT). "New" parts are initialised at random.
//
//   from one stack (univae, unilm, classify, insertion-one-stack, kermit, BERT)
//     to one stack     all weights are copied. Latents and slots are new if the weights have none of the same shape;
//                      attention is new if the parameters of the two kinds of attention have different meanings
//     to two stacks    encoder and decoder both copy the layers; cross-attention is new               Rothe et al. 2020
//   from two stacks (seq2seq, insertion)
//     to two stacks    all weights are copied. Slots are new if the weights have none
#pragma once
#include "models/runs/hugging_face/token_choice.h"
#include "models/runs/run.h"

namespace masquerade {

class Start {
  public:
    virtual ~Start() = default;
    virtual std::string source() const = 0;  // the path that run.json records
    WordPiece tokenizer() const;
    // Restricts the vocabulary to the tokens of the text, the special tokens and the added tokens, as keep_tokens of
    // bert4keras does.
    void keep(const TrainingText& text);
    // Replaces the vocabulary by the words of a task. Known tokens keep their rows. New tokens are initialised at
    // random and scaled to the known rows' RMS. Throws BadInput if the weights have a token that the task lacks.
    void extend(const std::vector<std::string>& words, const std::string& task);
    // Sets the sizes to those of the weights, and the settings that follow from the weights' origin. Other settings are
    // unchanged.
    virtual void adopt(RunSettings& settings) const = 0;
    // Copies the weights into the run. Returns a description of what was copied and what is new. The run may have fewer
    // layers than the weights. Throws BadInput if another size differs.
    std::string give_weights(Run& run) const;

    // Throws BadInput if the folder is neither a run nor a Hugging Face checkpoint.
    static std::unique_ptr<Start> open(const std::string& path);

  protected:
    virtual WordPiece all_tokens() const = 0;
    virtual const Parameters& weights() const = 0;
    virtual Stacks stacks() const = 0;
    virtual bool has_head() const { return true; }

  private:
    void expect_same_sizes(const Stacks& ours) const;
    void expect_layers(const char* key, int wanted, int there) const;
    void copy_of(const Tensor& given, const View& to) const;  // if rows belong to tokens, copies only the kept rows
    void copy_known(const View& from, const View& to) const;

    std::optional<ChosenTokens> chosen_;
    std::optional<Vocabulary> extended_;
};

}  // namespace masquerade
