// SPDX-License-Identifier: MIT
// The start of a new run: the weights, sizes and vocabulary of another run, or of a BERT or RoFormer of Hugging Face's.
//
//   one stack (univae, unilm, classify, insertion-one-stack, kermit, BERT)
//     to one stack     all of it; what else the model has, latents or slots, is new where the other has none of its
//                      shape;
//                      so is an attention of a kind whose parameters mean something else
//     to two stacks    encoder and decoder each take its layers; cross-attention is new               Rothe et al. 2020
//   two stacks (seq2seq, insertion)
//     to two stacks    all of both; slots are new where the other has none
#pragma once
#include "models/runs/hugging_face/token_choice.h"
#include "models/runs/run.h"

namespace masquerade {

class Start {
  public:
    virtual ~Start() = default;
    virtual std::string source() const = 0;  // for run.json
    WordPiece tokenizer() const;
    // From here on the vocabulary has the tokens that this text has, the special and the added ones, alone: keep_tokens
    // of bert4keras.
    void keep(const TrainingText& text);
    // From here on the vocabulary is this one, which a task brings. The tokens of the weights keep their rows; others
    // begin as they are drawn, in the size of these. BadInput if the weights have a token that the task lacks.
    void extend(const std::vector<std::string>& words, const std::string& task);
    // Makes the sizes those of the weights; what else is set stays.
    virtual void adopt(RunSettings& settings) const = 0;
    // Says what was taken and what is new. A stack may have fewer layers than there are; BadInput where another size
    // has been changed since.
    std::string give_weights(Run& run) const;

    // BadInput where the folder holds none of the above.
    static std::unique_ptr<Start> open(const std::string& path);

  protected:
    virtual WordPiece all_tokens() const = 0;
    virtual const Parameters& weights() const = 0;
    virtual Stacks stacks() const = 0;
    virtual bool has_head() const { return true; }

  private:
    void expect_same_sizes(const Stacks& ours) const;
    void expect_layers(const char* key, int wanted, int there) const;
    void copy_of(const Tensor& given, const View& to) const;  // rows of tokens: of those that are kept
    void copy_known(const View& from, const View& to) const;

    std::optional<ChosenTokens> chosen_;
    std::optional<Vocabulary> extended_;
};

}  // namespace masquerade
