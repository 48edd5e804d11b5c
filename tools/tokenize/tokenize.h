// SPDX-License-Identifier: MIT
// The parts of ./tokenize.
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

// The tokenizer as its file says and the settings override; notes on it are logged.
WordPiece open_tokenizer(const TokenizeSettings& s);

// Sets how text is read to what the command line says; the rest stays as a file says.
void override_reading(const TokenizeSettings& s, NormaliseOptions& options);

// Standard input to standard output.
void encode_lines(const TokenizeSettings& s);
void decode_lines(const TokenizeSettings& s);

// Standard input, a vocabulary or what is known of one; to the file named, or a table on standard output.
void learn_vocabulary(const TokenizeSettings& s);
void measure_restoration(const TokenizeSettings& s);
void report_text(const TokenizeSettings& s);
void simplify_vocabulary(const TokenizeSettings& s);
void write_json(const TokenizeSettings& s);

}  // namespace masquerade
