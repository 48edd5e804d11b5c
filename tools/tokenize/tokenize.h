// SPDX-License-Identifier: MIT
// The commands of ./tokenize.
#pragma once
#include <string>

#include "tokenizer/frame.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

struct TokenizeSettings {
    std::string vocabulary, rules, replace, simplify, write_json, truncate = "longest", unknown = "word";
    bool cased = false, recognise = false, ids = false, offsets = false, characters = false, types = false;
    bool special = false, pairs = false, decode = false, report = false, restore = false;
    bool single_digits = false, cut_left = false;
    int max_word = 0, max_length = 0, train = 0, min_count = 2;
};

// Opens the tokenizer. Options on the command line override the settings in its file. Logs notes about the file.
WordPiece open_tokenizer(const TokenizeSettings& s);

// Sets the `options` for which the user gave a setting on the command line.
void override_reading(const TokenizeSettings& s, NormaliseOptions& options);

// These functions write one line to standard output for each line of standard input.
void encode_lines(const TokenizeSettings& s);
void decode_lines(const TokenizeSettings& s);

// These functions learn a vocabulary from standard input, measure a vocabulary on standard input, or write a vocabulary
// to a file in another form.
void learn_vocabulary(const TokenizeSettings& s);
void measure_restoration(const TokenizeSettings& s);
void report_text(const TokenizeSettings& s);
void simplify_vocabulary(const TokenizeSettings& s);
void write_json(const TokenizeSettings& s);

}  // namespace masquerade
