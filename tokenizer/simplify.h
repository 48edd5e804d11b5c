// SPDX-License-Identifier: MIT
// A vocabulary without the tokens that no text is ever cut into, and which tokens were kept: their rows of a
// trained embedding are all that a model needs. As bert4keras does it (load_vocab, simplified=True).
#pragma once
#include <string>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace masquerade {

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
