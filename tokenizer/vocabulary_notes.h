// SPDX-License-Identifier: MIT
// Suspicious properties of a vocabulary. None of them is an error: bert-base-chinese has two blank tokens and thousands
// of tokens that can never occur.
#pragma once
#include <string>
#include <vector>

#include "tokenizer/characters.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

// Lists missing special tokens, equal tokens, and tokens that no text can produce with these options, one kind per
// line, with line numbers from 1. Tokens in brackets are skipped, because they are used by name.
std::vector<std::string> vocabulary_notes(const Vocabulary& vocabulary, const NormaliseOptions& options = {});

// A warning if the vocabulary seems to be made for text of the other case; "" otherwise.
std::string casing_note(const Vocabulary& vocabulary, bool lower);

// A vocabulary without the tokens that can never occur. A model needs only the rows keep_tokens of its embedding table.
// Follows bert4keras (load_vocab, simplified=True).
struct Simplified {
    Vocabulary vocabulary;
    std::vector<int> keep_tokens;  // old id of each new id
};

// Drops every token of more than one character that contains, apart from its "##", an ideograph or a punctuation mark:
// these are always words by themselves, so the token never matches. Such tokens are every [unusedN], [MASK] and "##"
// with an ideograph. The tokens in `first` come first and are always kept; the others keep their order. If tokens are
// equal, the last one is kept, which is the one that Vocabulary::id returns. TokenizerError if `first` contains a token
// twice or one that the vocabulary lacks.
Simplified simplify(const Vocabulary& vocabulary,
                    const std::vector<std::string>& first = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"});

}  // namespace masquerade
