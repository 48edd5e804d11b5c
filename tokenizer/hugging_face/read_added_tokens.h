// SPDX-License-Identifier: MIT
// Reads JSON files and lists of added tokens, for the other files of this folder.
#pragma once
#include <filesystem>

#include "input/json_field.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

using TokenizerField = JsonField<TokenizerError>;

// The flags of an added token, in the order in which tokenizer.json has them.
struct TokenFlag {
    const char* key;
    bool AddedToken::*flag;
};
constexpr TokenFlag token_flags[] = {{"single_word", &AddedToken::single_word},
                                     {"lstrip", &AddedToken::strip_left},
                                     {"rstrip", &AddedToken::strip_right},
                                     {"normalized", &AddedToken::normalised},
                                     {"special", &AddedToken::special}};

// The keys in tokenizer_config.json for BERT's five special tokens, in the order of special_tokens.
constexpr const char* role_keys[] = {"pad_token", "unk_token", "cls_token", "sep_token", "mask_token"};

inline nlohmann::json json_of(std::optional<bool> flag) { return flag ? nlohmann::json(*flag) : nlohmann::json(); }

inline bool exists(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
}

inline nlohmann::json read_json_file(const std::string& path) {
    // 25 million JSON values are enough for 10 million tokens, the largest vocabulary that ./tokenize --train learns.
    return parse_input<TokenizerError>(read_input<TokenizerError>(path, std::size_t(1) << 30), path, 25'000'000);
}

// Reads a list of {id, content, single_word, lstrip, rstrip, normalized, special}; each other key causes a note.
// A token that `vocabulary` lacks is appended to it and must have the next free id. If the list has a token twice, the
// later entry wins.
std::vector<AddedToken> read_added_tokens(const TokenizerField& list, Vocabulary& vocabulary, Strings& notes);

}  // namespace masquerade
