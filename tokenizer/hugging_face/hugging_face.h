// SPDX-License-Identifier: MIT
// Reads and writes tokenizers in Hugging Face's formats: tokenizer.json and model folders. Supports BERT's WordPiece.
// A setting in tokenizer.json that is not supported causes a note or a TokenizerError. The error names the file, the
// field, the value found and the value expected. "The library" means Hugging Face's tokenizers library; transformers
// has its own rules.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

struct HuggingFace {
    Vocabulary vocabulary;  // includes added tokens that are not in the model's own vocabulary
    WordPiece::Options options;
    std::vector<AddedToken> added;
    Strings notes;  // one line for each ignored key and each suspicious setting
};

// Reads a tokenizer.json with these parts:
//   normalizer      none, or BertNormalizer; before BertNormalizer, there may be Replace of single characters
//   pre_tokenizer   BertPreTokenizer
//   model           WordPiece with "[UNK]" and "##". The n tokens have the ids 0 to n - 1. If a token is repeated in
//                   vocab.txt, the JSON has only the last id of this token; the missing ids are read from the vocab.txt
//                   in the same folder.
//   added_tokens    a list; tokens that are not in `model` must have the ids n, n + 1, ...
//   post_processor  [CLS] A [SEP] B [SEP] (BertProcessing or TemplateProcessing); if it is missing, a note says so
//   decoder         WordPiece or none; not used, because WordPiece::decode() has its own rules
//   truncation, padding: ignored, with a note
// The options are those of the library: Rules::hugging_face, and special tokens in the text are recognised. A program
// that reads untrusted text should set options.recognise_special = false.
HuggingFace read_tokenizer_json(const std::string& path);

// Returns the text of a tokenizer.json that the library can load (Tokenizer.from_file). The special tokens of the
// vocabulary become added tokens even if tokenizer.added() lacks them, so the library recognises them in text and skips
// them when decoding. tokenizer.json cannot express Rules::google; for a tokenizer with these rules, the library's
// results differ in the characters that characters.h lists (enum Rules). If several tokens are equal, only the last one
// is written, as by transformers. The ids of the earlier ones are only in vocab.txt; read_tokenizer_json() finds them
// there if vocab.txt is in the same folder.
std::string tokenizer_json(const WordPiece& tokenizer);

// Returns the files vocab.txt, tokenizer.json and tokenizer_config.json, for transformers and read_tokenizer(). The map
// contains the text of each file under its name.
std::map<std::string, std::string> tokenizer_files(const WordPiece& tokenizer);

// Reads a tokenizer from any of these paths:
//   *.json      a tokenizer.json
//   a folder    If the folder has a tokenizer.json, this file is read. If tokenizer_config.json contradicts it
//               (do_lower_case and the like), a note says so, because the library follows tokenizer.json and
//               transformers follows tokenizer_config.json.
//               Otherwise, vocab.txt is read, with Hugging Face's rules and the settings of tokenizer_config.json,
//               special_tokens_map.json and added_tokens.json. If all of these JSON files are missing, vocab.txt is
//               read as if it were given alone.
//               In both cases, the additional special tokens of tokenizer_config.json and special_tokens_map.json are
//               read. A tokenizer of another kind (MeCab, jieba, SentencePiece) is refused; the message names it.
//   any other   a vocab.txt, with BERT's reference rules and lower-casing
// A note warns if the settings keep capital letters but the vocabulary hardly has any, or if the settings lower-case
// text but the vocabulary has many capital letters. For example, tokenizer_config.json of bert-base-chinese has
// do_lower_case false, although the authors of this model lower-case text.
// If `cased` is given, it overrides what the files say about lower-casing: if `cased` is true, text keeps capitals and
// accents; if it is false, text is lower-cased and accents are stripped. The note about capital letters then compares
// the vocabulary with `cased`.
HuggingFace read_tokenizer(const std::string& path, std::optional<bool> cased = {});

// Makes a tokenizer for training from a tokenizer that was read from a file. In training, the characters "[SEP]" in a
// text are plain text, not the special token.
WordPiece training_tokenizer(HuggingFace read);

}  // namespace masquerade
