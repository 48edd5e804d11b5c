// SPDX-License-Identifier: MIT
// Finds suspicious properties of a vocabulary. None of them is an error: bert-base-chinese has two blank tokens and
// thousands of tokens that can never occur.
#pragma once
#include <string>
#include <vector>

#include "tokenizer/characters.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

// Returns one line for each kind of defect, with line numbers of the vocabulary, from 1: missing special tokens, equal
// tokens, and tokens that no text can produce with these options. Tokens in brackets such as [unused7] are skipped,
// because programs use them by name.
std::vector<std::string> vocabulary_notes(const Vocabulary& vocabulary, const NormaliseOptions& options = {});

// Returns a warning if the vocabulary seems to be made for text with capitals but `lower` is true, or the reverse;
// otherwise "".
std::string casing_note(const Vocabulary& vocabulary, bool lower);

// A vocabulary without the tokens that can never occur, as in bert4keras (load_vocab, simplified=True). The embedding
// table of a model then needs only the rows keep_tokens.
struct Simplified {
    Vocabulary vocabulary;
    std::vector<int> keep_tokens;  // old id of each new id
};

// Drops every token of more than one character that contains an ideograph or a punctuation mark (besides "##"). These
// characters are always words by themselves, so such a token never matches. Examples are [unused7], [MASK] and "##"
// with an ideograph. The tokens in `first` are always kept and come first; the other tokens keep their order. If tokens
// are equal, the last one is kept, whose id Vocabulary::id returns. Throws TokenizerError if `first` contains a token
// twice or a token that the vocabulary lacks.
Simplified simplify(const Vocabulary& vocabulary,
                    const std::vector<std::string>& first = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"});

}  // namespace masquerade
