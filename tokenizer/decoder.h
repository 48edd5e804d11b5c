// SPDX-License-Identifier: MIT
// From ids back to text, all at once or as they come.
#pragma once
#include <string>
#include <vector>

#include "tokenizer/spacing.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

// Decoder decoder(tokenizer); for (...) print(decoder.push(id)); print(decoder.finish());
//
// Pieces are put together to words. One that continues nothing is written as it is, "##" and all; a silent
// token ends the word before it, but plain decoding looks past it. [UNK], and every special token that is
// written, is a word, spelled as in the vocabulary.
//
// Text comes in whole words, and a word waits until the next one is complete, for the rules of spacing look at
// it: what push() holds back is two words at most, the last of which may go on. Plain decoding holds nothing
// back. For one thread; the tokenizer must outlive it.
class Decoder {
  public:
    enum class Spaces {
        restored,  // where a writer would have put them (spacing.h)
        plain,     // between all words: what Google's tools and Hugging Face's write without clean-up
    };
    enum class Special {
        silent,   // [UNK] and [MASK] are written; [PAD], [CLS], [SEP] and other special tokens leave no trace
        written,  // all are
        dropped,  // none is, as by Hugging Face's skip_special_tokens
    };
    struct Options {
        Spaces spaces = Spaces::restored;
        Special special = Special::silent;
    };

    explicit Decoder(const WordPiece& tokenizer, Options options);
    explicit Decoder(const WordPiece& tokenizer) : Decoder(tokenizer, Options()) {}

    // The text that is now certain, which may be empty; the second form appends it.
    std::string push(int id);
    void push(int id, std::string& text);

    // The rest; then a new text may begin. All that push() and finish() gave is what decode() gives.
    std::string finish();
    void finish(std::string& text);

  private:
    bool is_special(int id) const;
    void push_plain(const std::string& token, std::string& text);
    void end_word(std::string& text);

    const WordPiece& tokenizer_;
    Options options_;
    Spacing spacing_;
    bool begun_ = false;                            // plain: a token was written
    bool standing_ = false;                         // the open word began with a special token
    bool guarded_ = false;                          // and is not recognised beside letters
    std::vector<int> more_special_, single_words_;  // ids, sorted
};

}  // namespace masquerade
