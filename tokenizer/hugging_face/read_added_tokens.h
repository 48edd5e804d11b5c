// SPDX-License-Identifier: MIT
// Added tokens as Hugging Face's files list them; read by read_json.cpp and read_tokenizer.cpp.
#pragma once
#include <string>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/hugging_face/json_field.h"

namespace masquerade {

// A list of {id, content, single_word, lstrip, rstrip, normalized, special}, of which other keys get a note.
// `tokens` is the model's vocabulary; a token that it lacks is appended and must have the next free id. If a
// token is there twice, the last one counts.
std::vector<AddedToken> read_added_tokens(const JsonField& list, std::vector<std::string>& tokens,
                                          std::vector<std::string>& notes);

}  // namespace masquerade
