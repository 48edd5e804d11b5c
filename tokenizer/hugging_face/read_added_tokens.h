// SPDX-License-Identifier: MIT
// Shared by read_json.cpp and read_tokenizer.cpp: JSON, and added tokens as Hugging Face's files list them.
#pragma once
#include <string>
#include <vector>

#include "input/json_field.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

using TokenizerField = JsonField<TokenizerError>;

inline nlohmann::json read_json_file(const std::string& path) {
    // of --train's 10 million
    return parse_input<TokenizerError>(read_input<TokenizerError>(path, std::size_t(1) << 30), path, 25'000'000);
}

// A list of {id, content, single_word, lstrip, rstrip, normalized, special}, of which other keys get a note.
// `tokens` is the model's vocabulary; a token that it lacks is appended and must have the next free id. If a
// token is there twice, the last one counts.
std::vector<AddedToken> read_added_tokens(const TokenizerField& list, std::vector<std::string>& tokens,
                                          std::vector<std::string>& notes);

}  // namespace masquerade
