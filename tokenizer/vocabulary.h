// SPDX-License-Identifier: MIT
// A WordPiece vocabulary. A file has one token per line; the id of a token is its line number, from 0. Pieces that
// continue a word begin with "##".
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "input/lists.h"

namespace masquerade {

// The arguments are the parts of the message: throw TokenizerError("max_word is ", n, ", expected 1 or more").
struct TokenizerError : std::runtime_error {
    template <class... Parts>
    explicit TokenizerError(const Parts&... parts) : std::runtime_error(joined(parts...)) {}

  private:
    template <class... Parts>
    static std::string joined(const Parts&... parts) {
        std::ostringstream all;
        (all << ... << parts);
        return all.str();
    }
};

class Vocabulary {
  public:
    Vocabulary() = default;
    explicit Vocabulary(Strings tokens);

    // Reads one token per line. Only LF ends a line, because U+2028 (line separator) is a token of bert-base-chinese.
    // A CR before the LF and a byte order mark are dropped. An empty line is the empty token.
    static Vocabulary load(const std::string& path);
    std::string lines() const;  // the text of a vocab.txt; throws TokenizerError if a token contains a line feed

    int size() const { return int(tokens_.size()); }

    // Returns the id of a token; if the vocabulary lacks the token, appends it first.
    int add(const std::string& token);

    // Returns the id of a token; -1 if the vocabulary lacks the token. If several tokens are equal, returns the last
    // id.
    int id(std::string_view token) const;
    const std::string& token(int id) const;
    const Strings& tokens() const { return tokens_; }

    // The ids of the special tokens; -1 if the vocabulary lacks the token.
    int pad() const { return special_[0]; }
    int unk() const { return special_[1]; }
    int cls() const { return special_[2]; }
    int sep() const { return special_[3]; }
    int mask() const { return special_[4]; }
    bool is_special(int id) const;

  private:
    void find_special();

    Strings tokens_;
    std::unordered_map<std::string, int> ids_;
    int special_[5] = {-1, -1, -1, -1, -1};
};

// [PAD] [UNK] [CLS] [SEP] [MASK]. Vocabularies that train_vocabulary() returns begin with these tokens.
extern const char* const special_tokens[5];

// Whether the token is a piece that continues a word.
inline bool continues(std::string_view token) { return token.substr(0, 2) == "##"; }

}  // namespace masquerade
