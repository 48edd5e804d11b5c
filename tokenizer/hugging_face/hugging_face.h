// SPDX-License-Identifier: MIT
// Tokenizers as Hugging Face's library keeps them: tokenizer.json, and folders of a model. Only what BERT's
// WordPiece needs is read, and nothing is passed over in silence: what cannot be done here as it is done
// there is a TokenizerError that names the file, the field, what was found and what is expected.
#pragma once
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
//   model           WordPiece with "[UNK]" and "##"; its ids are 0 to n - 1, each once
//   added_tokens    those the model lacks go on from n
//   post_processor  [CLS] A [SEP] B [SEP] (BertProcessing or TemplateProcessing); a note where there is none
//   decoder         WordPiece or none; our own decoder serves in its stead
//   truncation, padding: a note says that they were passed over
// The rules are Hugging Face's, and special tokens in the text are recognised, as the library does it; a
// program that reads other people's text may prefer options.recognise_special = false.
HuggingFace read_tokenizer_json(const std::string& path);

// The same tokenizer for the library (Tokenizer.from_file). The special tokens of the vocabulary are added
// tokens even if not in `added`, so there they are recognised in the text, and skipped in decoding. Under
// Rules::google it agrees but for the characters in which the two differ (see Rules). Equal tokens, which the format
// cannot say, are a TokenizerError.
void write_tokenizer_json(const std::string& path, const Vocabulary& vocabulary, const WordPiece::Options& options,
                          const std::vector<AddedToken>& added = {});

// Whatever the path is:
//   *.json      a tokenizer.json
//   a folder    its tokenizer.json, which is complete. Where a tokenizer_config.json beside it says otherwise
//               (do_lower_case and the like), a note says so: the library reads the first alone,
//               transformers obeys the second. Without a tokenizer.json its vocab.txt, with the settings of
//               tokenizer_config.json and Hugging Face's rules; without that, too, a plain vocab.txt
//   else        a vocab.txt: BERT's reference with its settings, lower case
// A note says where capital letters are kept and the vocabulary knows none, or the other way round: the
// tokenizer_config.json of bert-base-chinese has do_lower_case false, though its authors use lower case.
// cased: capitals and accents stay, whatever the files say; the note is about that.
HuggingFace read_tokenizer(const std::string& path, bool cased = false);

}  // namespace masquerade
