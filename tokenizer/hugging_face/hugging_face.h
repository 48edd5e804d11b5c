// SPDX-License-Identifier: MIT
// Tokenizers as Hugging Face's library keeps them: tokenizer.json, and folders of a model. Only what BERT's
// WordPiece needs is read, and nothing is passed over in silence: what cannot be done here as it is done
// there is a TokenizerError that names the file, the field, what was found and what is expected.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

struct HuggingFace {
    Vocabulary vocabulary;  // with the added tokens that lie beyond the model's own
    WordPiece::Options options;
    std::vector<AddedToken> added;
    std::vector<std::string> notes;  // keys passed over, and what deserves a look: a line each
};

// tokenizer.json with the parts a BERT tokenizer has:
//   normalizer      BertNormalizer or none
//   pre_tokenizer   BertPreTokenizer
//   model           WordPiece with "[UNK]" and "##"; its ids are 0 to n - 1, each once, except that an id may be
//                   missing whose token stands again further down in a vocab.txt beside the file
//   added_tokens    those the model lacks go on from n
//   post_processor  [CLS] A [SEP] B [SEP] (BertProcessing or TemplateProcessing); a note where there is none
//   decoder         WordPiece or none; our own decoder serves in its stead
//   truncation, padding: a note says that they were passed over
// The rules are Hugging Face's, and special tokens in the text are recognised, as the library does it; a
// program that reads other people's text may prefer options.recognise_special = false.
HuggingFace read_tokenizer_json(const std::string& path);

// The same tokenizer for the library (Tokenizer.from_file). The special tokens of the vocabulary are added
// tokens even if not in `added`, so there they are recognised in the text, and skipped in decoding. Under
// Rules::google it agrees but for the characters in which the two differ (see Rules). If tokens are equal, only the
// last is written, as transformers does: the vocab.txt beside the file tells read_tokenizer_json the others.
void write_tokenizer_json(const std::string& path, const Vocabulary& vocabulary, const WordPiece::Options& options,
                          const std::vector<AddedToken>& added = {});

// A folder's vocab.txt, tokenizer.json and tokenizer_config.json: a tokenizer as transformers and read_tokenizer read
// it.
void write_tokenizer(const std::string& folder, const WordPiece& tokenizer);

// Whatever the path is:
//   *.json      a tokenizer.json
//   a folder    its tokenizer.json, which is complete. Where a tokenizer_config.json beside it says otherwise
//               (do_lower_case and the like), a note says so: the library reads the first alone,
//               transformers obeys the second. Without a tokenizer.json its vocab.txt, with the settings of
//               tokenizer_config.json, special_tokens_map.json and added_tokens.json and Hugging Face's rules; without
//               those, too, a plain vocab.txt. additional_special_tokens count either way. A tokenizer that is not
//               BERT's (MeCab's, jieba's, SentencePiece's) is refused by name
//   else        a vocab.txt: BERT's reference with its settings, lower case
// A note says where capital letters are kept and the vocabulary knows none, or the other way round: the
// tokenizer_config.json of bert-base-chinese has do_lower_case false, though its authors use lower case.
// cased: whether capitals and accents stay, whatever the files say; the note is about that.
HuggingFace read_tokenizer(const std::string& path, std::optional<bool> cased = {});

}  // namespace masquerade
