// SPDX-License-Identifier: MIT
// The properties of a vocabulary that deserve a look. None is an error: bert-base-chinese has two blank tokens, and
// thousands that can never occur.
#pragma once
#include <string>
#include <vector>

#include "tokenizer/characters.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

// Special tokens that are missing, equal tokens, and those that no text with these options can give. A line each,
// with the number of the vocabulary's line, counted from 1. Tokens in brackets are left out: they are asked for by
// name.
std::vector<std::string> vocabulary_notes(const Vocabulary& vocabulary, const NormaliseOptions& options = {});

// Empty, or why the vocabulary seems made for text in the other case.
std::string casing_note(const Vocabulary& vocabulary, bool lower);

// A vocabulary without the tokens that no text is ever cut into, and which tokens were kept: their rows of a
// trained embedding are all that a model needs. As bert4keras does it (load_vocab, simplified=True).
struct Simplified {
    Vocabulary vocabulary;
    std::vector<int> keep_tokens;  // [new id]: the old id
};

// Drops every token of more than one character that, its "##" not counted, holds an ideograph or punctuation:
// these are words by themselves, so such a token never matches (every [unusedN], [MASK] and "##" + ideograph
// is one). `first` come first and stay in any case; the others keep their order. If tokens are equal, the last one
// stays, in its place: it is the one that Vocabulary::id gives. TokenizerError where `first` names a token
// twice, or one that is not there.
Simplified simplify(const Vocabulary& vocabulary,
                    const std::vector<std::string>& first = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"});

}  // namespace masquerade
