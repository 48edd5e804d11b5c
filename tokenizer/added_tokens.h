// SPDX-License-Identifier: MIT
// Tokens that are recognised in the text itself, such as a "[MASK]" that somebody wrote, before the rest is
// cut into words. As Hugging Face's library does it (added_vocabulary.rs), strange cases included.
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
    bool special = true;       // [CLS] and the like: it means nothing as text
    bool single_word = false;  // not where a letter, digit, mark or "_" touches it
    bool strip_left = false;   // takes the white space before it, too
    bool strip_right = false;  // and after it
    bool normalised = false;   // sought in the normalised text, by its own normalised form
    bool beyond = false;       // past the model's own vocabulary: words are never cut into it
};

class AddedTokens {
  public:
    // Bytes [begin, end) of a line: the token with this id, or ordinary text where the id is -1. A token
    // covers the white space it takes. It is empty where an earlier one took all it consists of.
    struct Part {
        int begin, end;
        int id;
    };

    AddedTokens() = default;

    // Tokens that are empty, or whose normalised form is, are never found. Without special, text that spells
    // a special token stays text, also what other tokens would be part of it.
    AddedTokens(std::vector<AddedToken> tokens, const Characters& characters, bool special = true);

    // Whether nothing is ever found.
    bool empty() const { return exact_.firsts.empty() && normalised_.firsts.empty(); }

    // False where a line surely holds no token: a look for the bytes that tokens begin with. Those that are
    // sought in normalised text cost normalising every line.
    bool may_hold(std::string_view line) const;

    // The parts of a line, in order, without gap or overlap. At each place the longest token counts, and
    // those that are normalised only where the others left text. Bytes that are not UTF-8 are looked past. A
    // token that matches a part of what one character becomes (a jamo of a syllable) takes the character.
    void split(std::string_view line, std::vector<Part>& parts) const;
    std::vector<Part> split(std::string_view line) const;

  private:
    struct Set {
        Trie trie{{}};                     // the value: which of tokens_
        std::string firsts;                // the bytes that they begin with
        std::array<bool, 256> is_first{};  // the same
        std::size_t candidate(std::string_view text, std::size_t from) const;
    };
    Set make_set(const std::vector<std::string>& forms, bool normalised) const;
    template <class Emit>
    void find(const Set& set, std::string_view text, Emit emit) const;

    std::vector<AddedToken> tokens_;
    std::shared_ptr<const Characters> characters_;  // where a token is sought in normalised text
    bool special_ = true;
    Set exact_, normalised_;
};

}  // namespace masquerade
