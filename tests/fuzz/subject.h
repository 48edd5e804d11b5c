// SPDX-License-Identifier: MIT
// The tokenizers that are fuzzed: one vocabulary with something of every kind of writing, and options that
// between them turn everything on and off.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tokenizer/wordpiece.h"

namespace masquerade::fuzz {

// A range of code points whose characters, and their "##" forms, are tokens; also what inputs are made of.
struct Block {
    char32_t first, last;
};
const std::vector<Block>& blocks();

// Words, parts of words and added tokens that inputs are made of.
const std::vector<std::string>& fragments();

struct Subject {
    WordPiece tokenizer;
    bool odd_tokens;  // recognises tokens that take spaces, and such that are sought in normalised text
    Subject(WordPiece::Options options, std::vector<AddedToken> added);
};

std::size_t subject_count();
const Subject& subject(std::size_t number);  // made when first asked for

}  // namespace masquerade::fuzz
