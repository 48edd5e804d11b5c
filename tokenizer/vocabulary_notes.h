// SPDX-License-Identifier: MIT
// The properties of a vocabulary that deserve a look. None is an error: bert-base-chinese has two blank tokens, and
// thousands that can never occur.
#pragma once
#include <string>
#include <vector>

#include "tokenizer/characters.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

// Special tokens that are missing, equal tokens, and those that no text with these options can give. A line each,
// with the number of the vocabulary's line, counted from 1. Tokens in brackets are left out: they are asked for by name.
std::vector<std::string> vocabulary_notes(const Vocabulary& vocabulary, const NormaliseOptions& options = {});

// Empty, or why the vocabulary seems made for text in the other case.
std::string casing_note(const Vocabulary& vocabulary, bool lower);

}  // namespace masquerade
