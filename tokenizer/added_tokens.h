// SPDX-License-Identifier: MIT
// Finds tokens that are spelled out in a text, such as "[MASK]", before the remaining text is split into words. The
// results are those of Hugging Face's tokenizers library (added_vocabulary.rs), even in unusual cases.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/normalise.h"
#include "tokenizer/trie.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

struct AddedToken {
    std::string text;
    int id = -1;
    bool special = true;       // a control token such as [CLS], which has no meaning as text
    bool single_word = false;  // not recognised next to a letter, digit, combining mark or "_"
    bool strip_left = false;   // a match includes the white space before the token
    bool strip_right = false;  // a match includes the white space after the token
    bool normalised = false;   // the token's normalised form is searched for in the normalised text
    bool beyond = false;       // not a piece of the WordPiece model: words are never split into this token
};

// Returns the special tokens that the vocabulary has.
std::vector<AddedToken> special_added(const Vocabulary& vocabulary);

class AddedTokens {
  public:
    // Bytes [begin, end) of a line: a token, or ordinary text if id is -1. If a token has strip_left or strip_right,
    // its part includes the white space on that side. If the part of an earlier token already includes all bytes of a
    // later token, the part of the later token is empty.
    struct Part {
        int begin, end;
        int id;
    };

    AddedTokens() = default;

    // A token whose text or normalised form is empty is never found. If `special` is false, special tokens are not
    // recognised: text that spells a special token stays ordinary text, even if it contains a shorter token.
    AddedTokens(std::vector<AddedToken> tokens, const Characters& characters, bool special = true);

    // Whether no token can ever be found.
    bool empty() const { return exact_.firsts.empty() && normalised_.firsts.empty(); }

    // A fast test: false means that the line contains no token; true means that the line may contain one. The test only
    // searches for the first byte of each token. If some tokens have the flag `normalised` and can be found, the result
    // is true for every line that is not empty.
    bool may_hold(std::string_view line) const;

    // Splits a line into parts, in order, without gaps or overlaps. The longest token at each position wins. Tokens
    // without `normalised` are found first; tokens with `normalised` are found only in the text between them. Bytes
    // that are not UTF-8 are ignored. A token may match only a part of a character's normalised form, such as one
    // letter of a Hangul syllable; the Part of the token then covers the whole character.
    std::vector<Part> split(std::string_view line) const;

  private:
    struct Set {
        Trie trie{{}};                     // text to search for -> index of its token in tokens_
        std::string firsts;                // the different first bytes of the texts to search for
        std::array<bool, 256> is_first{};  // is_first[b]: whether `firsts` contains b
        std::size_t candidate(std::string_view text, std::size_t from) const;
    };
    Set make_set(const Strings& forms, bool normalised) const;
    template <class Emit>
    void find(const Set& set, std::string_view text, Emit emit) const;

    std::vector<AddedToken> tokens_;
    std::shared_ptr<const Characters> characters_;  // null if no token has `normalised`
    bool special_ = true;
    Set exact_, normalised_;
};

}  // namespace masquerade
