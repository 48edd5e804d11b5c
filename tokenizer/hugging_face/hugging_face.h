// SPDX-License-Identifier: MIT
// Reads and writes tokenizers in Hugging Face's format: tokenizer.json, and model folders. Supports what BERT's
// WordPiece needs. Nothing is ignored silently: a setting that cannot be reproduced is a TokenizerError with the file,
// the field, the value found and the value expected.
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
//   model           WordPiece with "[UNK]" and "##". The ids are 0 to n - 1, each once. Exception: an id may be missing
//                   if its token occurs again further down in a vocab.txt in the same folder.
//   added_tokens    tokens that the model lacks have the ids from n on
//   post_processor  [CLS] A [SEP] B [SEP] (BertProcessing or TemplateProcessing); without one, a note is added
//   decoder         WordPiece or none; our own decoder is used
//   truncation, padding: ignored, with a note
// As in the library, the rules are Hugging Face's and special tokens in the text are recognised. A program that reads
// untrusted text may prefer options.recognise_special = false.
HuggingFace read_tokenizer_json(const std::string& path);

// Writes the tokenizer for the library (Tokenizer.from_file). The special tokens of the vocabulary become added tokens
// even if `added` lacks them, so the library recognises them in text and skips them when decoding. Under Rules::google
// the results agree except for the characters in which the two rules differ (see Rules). If tokens are equal, only the
// last one is written, as in transformers; read_tokenizer_json reads the others from a vocab.txt in the same folder.
void write_tokenizer_json(const std::string& path, const Vocabulary& vocabulary, const WordPiece::Options& options,
                          const std::vector<AddedToken>& added = {});

// Writes vocab.txt, tokenizer.json and tokenizer_config.json into a folder, for transformers and read_tokenizer.
void write_tokenizer(const std::string& folder, const WordPiece& tokenizer);

// Reads a tokenizer from any of these paths:
//   *.json      a tokenizer.json
//   a folder    its tokenizer.json, if there is one. If its tokenizer_config.json contradicts it (do_lower_case and the
//               like), a note says so, because the library follows tokenizer.json and transformers follows
//               tokenizer_config.json. Otherwise its vocab.txt, with the settings of tokenizer_config.json,
//               special_tokens_map.json and added_tokens.json and Hugging Face's rules, or, without these files, as a
//               plain vocab.txt. additional_special_tokens are always read. A tokenizer of another kind (MeCab, jieba,
//               SentencePiece) is refused by name.
//   any other   a vocab.txt: BERT's reference with its settings, lower case
// A note says if text keeps capital letters but the vocabulary has none, or the reverse: tokenizer_config.json of
// bert-base-chinese has do_lower_case false although its authors use lower case.
// cased: whether capitals and accents are kept, whatever the files say. The note on case then refers to this setting.
HuggingFace read_tokenizer(const std::string& path, std::optional<bool> cased = {});

}  // namespace masquerade
