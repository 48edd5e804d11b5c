// SPDX-License-Identifier: MIT
// Finds tokens that are spelled out in a text, such as "[MASK]", before the remaining text is split into words. Follows
// Hugging Face's library (added_vocabulary.rs), including its odd cases.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/normalise.h"
#include "tokenizer/trie.h"

namespace masquerade {

struct AddedToken {
    std::string text;
    int id = -1;
    bool special = true;       // a control token such as [CLS], which has no meaning as text
    bool single_word = false;  // not found next to a letter, digit, mark or "_"
    bool strip_left = false;   // includes the white space before it
    bool strip_right = false;  // includes the white space after it
    bool normalised = false;   // its normalised form is searched for in the normalised text
    bool beyond = false;       // not in the model's own vocabulary: words are never split into it
};

class AddedTokens {
  public:
    // Bytes [begin, end) of a line: a token, or ordinary text if id is -1. A token with strip_left or strip_right
    // includes the white space on that side. A token is empty if an earlier token includes all of its bytes.
    struct Part {
        int begin, end;
        int id;
    };

    AddedTokens() = default;

    // A token whose text or normalised form is empty is never found. If `special` is false, special tokens are not
    // recognised: the text that spells one stays ordinary text, even if it contains a shorter token.
    AddedTokens(std::vector<AddedToken> tokens, const Characters& characters, bool special = true);

    // Whether no token can ever be found.
    bool empty() const { return exact_.firsts.empty() && normalised_.firsts.empty(); }

    // Returns false only if the line contains no token; for speed, only searches for the first bytes of tokens. If a
    // token is searched for in normalised text, returns true for every line that is not empty.
    bool may_hold(std::string_view line) const;

    // Splits a line into parts, in order, without gaps or overlaps. The longest token at each position wins. Tokens
    // that are searched for in normalised text are found only between the other tokens. Bytes that are not UTF-8 are
    // ignored. A token that matches only a part of a character's normalised form (a jamo of a Hangul syllable) covers
    // the whole character.
    void split(std::string_view line, std::vector<Part>& parts) const;
    std::vector<Part> split(std::string_view line) const;

  private:
    struct Set {
        Trie trie{{}};                     // value: index into tokens_
        std::string firsts;                // the first bytes of the tokens
        std::array<bool, 256> is_first{};  // `firsts`, as a table
        std::size_t candidate(std::string_view text, std::size_t from) const;
    };
    Set make_set(const std::vector<std::string>& forms, bool normalised) const;
    template <class Emit>
    void find(const Set& set, std::string_view text, Emit emit) const;

    std::vector<AddedToken> tokens_;
    std::shared_ptr<const Characters> characters_;  // set if a token is searched for in normalised text
    bool special_ = true;
    Set exact_, normalised_;
};

}  // namespace masquerade
