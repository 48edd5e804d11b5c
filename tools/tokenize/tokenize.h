// SPDX-License-Identifier: MIT
// The settings of ./tokenize, and the functions for its tasks.
#pragma once
#include <string>

#include "tokenizer/hugging_face/hugging_face.h"

namespace masquerade {

struct TokenizeSettings {
    std::string vocabulary, rules, replace, simplify, write_json, pack, check, truncate = "longest", unknown = "word";
    bool cased = false, recognise = false, ids = false, offsets = false, characters = false, types = false;
    bool special = false, pairs = false, decode = false, report = false, restore = false;
    bool single_digits = false, cut_left = false;
    int max_word = 0, max_length = 0, train = 0, min_count = 2;
};

// Reads the tokenizer in the file or folder s.vocabulary, and logs notes about it.
HuggingFace read_vocabulary(const TokenizeSettings& s);
// Opens the tokenizer in the file or folder s.vocabulary, and logs notes about it. Options on the command line
// override the settings that are stored with the tokenizer.
WordPiece open_tokenizer(const TokenizeSettings& s);

// Overwrites the members of `options` that the user set on the command line.
void override_reading(const TokenizeSettings& s, WordPiece::Options& options);

// Both functions write one line to standard output for each line of standard input.
void encode_lines(const TokenizeSettings& s);
void decode_lines(const TokenizeSettings& s);

// pack_text() writes standard input as a packed text (data/packed_text.h), and check_pack() checks one.
void pack_text(const TokenizeSettings& s);
void check_pack(const TokenizeSettings& s);

// learn_vocabulary() learns a vocabulary from standard input. measure_restoration() and report_text() measure a
// vocabulary on the text in standard input. simplify_vocabulary() and write_json() write a vocabulary to a new file.
void learn_vocabulary(const TokenizeSettings& s);
void measure_restoration(const TokenizeSettings& s);
void report_text(const TokenizeSettings& s);
void simplify_vocabulary(const TokenizeSettings& s);
void write_json(const TokenizeSettings& s);

}  // namespace masquerade
