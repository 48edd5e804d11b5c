// SPDX-License-Identifier: MIT
// Reads and writes tokenizers in Hugging Face's format: tokenizer.json and model folders. Supports BERT's WordPiece. No
// setting is ignored silently: a setting that is not supported is a TokenizerError with the file, the field, the value
// found and the value expected.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

struct HuggingFace {
    Vocabulary vocabulary;  // includes the added tokens beyond the model's own vocabulary
    WordPiece::Options options;
    std::vector<AddedToken> added;
    std::vector<std::string> notes;  // ignored keys and suspicious settings, one line each
};

// Reads a tokenizer.json with these parts:
//   normalizer      BertNormalizer, Replace of single characters before it, or none
//   pre_tokenizer   BertPreTokenizer
//   model           WordPiece with "[UNK]" and "##". The ids are 0 to n - 1, each once. Exception: if a
//                   vocab.txt in the same folder repeats a token, the JSON has only its last id; the earlier ids are
//                   read from vocab.txt.
//   added_tokens    tokens that are not in `model` have the ids n, n + 1, ...
//   post_processor  [CLS] A [SEP] B [SEP] (BertProcessing or TemplateProcessing); if it is missing, a note says so
//   decoder         WordPiece or none; our own decoder is used
//   truncation, padding: ignored, with a note
// The options follow the library: Rules::hugging_face, and special tokens in the text are recognised. A program that
// reads untrusted text may prefer options.recognise_special = false.
HuggingFace read_tokenizer_json(const std::string& path);

// Writes the tokenizer for the library (Tokenizer.from_file). The special tokens of the vocabulary become added tokens
// even if `added` lacks them, so the library recognises them in text and skips them when decoding. With Rules::google,
// the library gives the same results except for the characters listed at Rules. If tokens are equal, only the last one
// is written, as in transformers; read_tokenizer_json reads the others from a vocab.txt in the same folder.
void write_tokenizer_json(const std::string& path, const Vocabulary& vocabulary, const WordPiece::Options& options,
                          const std::vector<AddedToken>& added = {});

// Writes vocab.txt, tokenizer.json and tokenizer_config.json into a folder, for transformers and read_tokenizer.
void write_tokenizer(const std::string& folder, const WordPiece& tokenizer);

// Reads a tokenizer from any of these paths:
//   *.json      a tokenizer.json
//   a folder    If the folder has a tokenizer.json, this file. If tokenizer_config.json contradicts it (do_lower_case
//               and the like), a note says so, because the library follows tokenizer.json and transformers follows
//               tokenizer_config.json.
//               Otherwise its vocab.txt, with Hugging Face's rules and the settings of tokenizer_config.json,
//               special_tokens_map.json and added_tokens.json. Without these files, it is read like a single vocab.txt.
//               additional_special_tokens are always read. A tokenizer of another kind (MeCab, jieba, SentencePiece) is
//               refused by name.
//   any other   a vocab.txt, with BERT's reference rules and lower case
// If text keeps capital letters but the vocabulary has none, or the reverse, a note says so. For example,
// tokenizer_config.json of bert-base-chinese has do_lower_case false although its authors use lower case.
// If `cased` is given, it says whether capitals and accents are kept, whatever the files say. The note on case then
// refers to `cased`.
HuggingFace read_tokenizer(const std::string& path, std::optional<bool> cased = {});

}  // namespace masquerade
