// SPDX-License-Identifier: MIT
// The tokenizers that are fuzzed. They share one vocabulary, which has tokens of every kind of script. Together, their
// options cover every choice.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tokenizer/wordpiece.h"

namespace masquerade::fuzz {

// A range of code points. The vocabulary has each of these characters, alone and with "##". Inputs contain them, too.
struct Block {
    char32_t first, last;
};
const std::vector<Block>& blocks();

// Words, parts of words and added tokens that inputs contain.
const std::vector<std::string>& fragments();

struct Subject {
    WordPiece tokenizer;
    // Whether it has added tokens that take spaces, and added tokens that are searched in normalised text.
    bool odd_tokens;
    Subject(WordPiece::Options options, std::vector<AddedToken> added);
};

std::size_t subject_count();
const Subject& subject(std::size_t number);  // made when it is first requested

}  // namespace masquerade::fuzz
