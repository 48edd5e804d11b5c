// SPDX-License-Identifier: MIT
// The start of a new run: the weights, sizes and vocabulary of another run, or of a BERT or RoFormer of Hugging Face's.
//
//   from \ to      unilm   seq2seq
//   unilm          all     one stack: encoder and decoder each take its layers; cross-attention is new   Rothe et al. 2020
//   seq2seq        -       all
//   insertion: what seq2seq takes, or all of a run of insertion, or one stack where it has one; its slots are new
//   Hugging Face   all     one stack
#pragma once
#include "models/runs/target_run.h"

namespace masquerade {

class Start {
  public:
    virtual ~Start() = default;
    virtual std::string source() const = 0;  // for run.json
    virtual WordPiece tokenizer() const = 0;
    Vocabulary vocabulary() const { return tokenizer().vocabulary(); }
    // Makes the sizes those of the weights; what else is set stays.
    virtual void adopt(TargetSettings& settings) const = 0;
    // Says what was taken and what is new. A stack may have fewer layers than there are; BadInput where another size has
    // been changed since.
    std::string give_weights(TargetRun& run) const;

    // For a new run of `model`. BadInput where the folder holds none of the above.
    static std::unique_ptr<Start> open(const std::string& path, const std::string& model);

  protected:
    virtual const Parameters& weights() const = 0;
    virtual Stacks stacks() const = 0;
    virtual bool has_head() const { return true; }

  private:
    void expect_same_sizes(const Stacks& ours) const;
    void expect_layers(const char* key, int wanted, int there) const;
};

}  // namespace masquerade
