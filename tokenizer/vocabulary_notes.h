// SPDX-License-Identifier: MIT
// Finds suspicious properties of a vocabulary. They are not errors: even bert-base-chinese has two blank tokens and
// thousands of tokens that encoding can never produce.
#pragma once
#include <string>
#include <vector>

#include "tokenizer/wordpiece.h"

namespace masquerade {

// Returns one line for each kind of defect: missing special tokens, equal tokens, and tokens that this tokenizer cannot
// produce from any text. The lines name tokens with their line numbers in the vocabulary, from 1. Tokens in brackets,
// such as [unused7], are not listed as tokens that no text can produce, because programs use them by name.
Strings vocabulary_notes(const WordPiece& tokenizer);

// Returns a warning if `lower` is true but the vocabulary seems to be made for text with capital letters, or if `lower`
// is false but the vocabulary seems to be made for lower-cased text. Returns "" otherwise.
std::string casing_note(const Vocabulary& vocabulary, bool lower);

// The result of simplify(): a smaller vocabulary, as in bert4keras (load_vocab, simplified=True). A model's embedding
// table then needs only the rows in keep_tokens.
struct Simplified {
    Vocabulary vocabulary;
    std::vector<int> keep_tokens;  // keep_tokens[new id] is the old id
};

// Drops every token of more than one character that contains a punctuation mark (other than "##" at its beginning) or,
// if the options split them, an ideograph. These characters are always words by themselves, so such a token never
// matches. Examples are [unused7], [MASK] and "##" followed by an ideograph. The tokens in `first` are always kept and
// come first; the other tokens keep their order. If tokens are equal, only the last one is kept, because
// Vocabulary::id() returns its id. Throws TokenizerError if `first` contains a token twice or a token that the
// vocabulary lacks.
Simplified simplify(const Vocabulary& vocabulary, const Strings& first = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"},
                    const NormaliseOptions& options = {});

}  // namespace masquerade
