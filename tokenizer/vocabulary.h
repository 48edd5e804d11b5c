// SPDX-License-Identifier: MIT
// A WordPiece vocabulary: one token a line, its id the line's number from 0. Pieces that continue a word
// begin with "##".
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace masquerade {

struct TokenizerError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Vocabulary {
  public:
    Vocabulary() = default;
    explicit Vocabulary(std::vector<std::string> tokens);

    // Lines end at LF alone (U+2028 is a token of bert-base-chinese); one CR before it is dropped, and a byte order
    // mark. Empty lines count.
    static Vocabulary load(const std::string& path);
    void save(const std::string& path) const;
    std::string lines() const;  // what save() writes; TokenizerError if a token has a line feed in it

    int size() const { return int(tokens_.size()); }

    // -1 where there is no such token; of equal lines the last counts.
    int id(std::string_view token) const;
    const std::string& token(int id) const;

    // -1 where the vocabulary lacks them.
    int pad() const { return special_[0]; }
    int unk() const { return special_[1]; }
    int cls() const { return special_[2]; }
    int sep() const { return special_[3]; }
    int mask() const { return special_[4]; }
    bool is_special(int id) const;

  private:
    std::size_t slot_of(std::string_view token) const;

    std::vector<std::string> tokens_;
    std::vector<int> slots_;  // open addressing, a power of two, at most half full: id or -1
    int special_[5] = {-1, -1, -1, -1, -1};
};

// [PAD] [UNK] [CLS] [SEP] [MASK], the order of the functions above and of the vocabularies that are trained
// here.
extern const char* const special_tokens[5];

// Whether a token continues a word.
inline bool continues(std::string_view token) { return token.substr(0, 2) == "##"; }

}  // namespace masquerade
