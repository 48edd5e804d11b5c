// SPDX-License-Identifier: MIT
// Chooses which tokens of a trained model a new model keeps, and how the rows of new tokens are initialised, as
// keep_tokens and compound_tokens of bert4keras.
#pragma once
#include <string>
#include <vector>

#include "tokenizer/hugging_face/hugging_face.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

struct TokenChoice {
    std::vector<int> keep;  // [new id]: the old id; empty: all tokens are kept
    // The new tokens, which follow the kept ones. A new token's row is the mean of the rows of these kept tokens (new
    // ids) or, if the list is empty, the row of [UNK].
    std::vector<std::vector<int>> compounds;
    int unk = -1;  // new id of [UNK], for empty compounds
    int pad = -1;  // old id of the token whose row [PAD] gets; -1: as in config.json

    int kept(int rows) const { return keep.empty() ? rows : int(keep.size()); }
    // Number of tokens of the new model if the old model has `rows` tokens.
    int size(int rows) const { return kept(rows) + int(compounds.size()); }
    // Throws BadInput if an id does not exist, or if the new id of [PAD] is not 0. told: old id of [PAD] in
    // config.json.
    void check(int rows, int told) const;
};

// Returns the rows (V,E) of the new model's tokens, given the rows (rows,E) of the old model's. Kept rows are
// identical.
std::vector<double> choose_rows(const TokenChoice& choice, const std::vector<double>& from, int rows);

struct ChosenTokens {
    Vocabulary vocabulary;  // vocabulary of the new model
    TokenChoice choice;
};

// Chooses the tokens that simplify() of tokenizer/vocabulary_notes.h keeps, as load_vocab(simplified=True,
// startswith=first) of bert4keras does.
ChosenTokens simplified_tokens(const Vocabulary& vocabulary,
                               const std::vector<std::string>& first = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"});

// Chooses the tokens of `wanted`, in this order. Throws BadInput unless all tokens that the model lacks come last. The
// row of such a token is initialised with the mean of the kept pieces into which the model's tokenizer splits it or, if
// none is kept, with the row of [UNK].
ChosenTokens wanted_tokens(const WordPiece& model, const Vocabulary& wanted);

// Returns the first `rows` tokens of a vocabulary: those that a model with so many rows has.
Vocabulary first_tokens(const Vocabulary& vocabulary, int rows);

// Makes a tokenizer for training from one that was read from a file: the characters "[SEP]" in a text are plain text,
// not the special token.
WordPiece training_tokenizer(HuggingFace read);

// Returns a tokenizer that has other tokens but reads text in the same way. Added tokens that are among the new tokens
// are recognised as before.
WordPiece with_tokens(const WordPiece& reader, Vocabulary tokens);

// Chooses all tokens of a tokenizer, for a model whose embedding has this number of rows. If there are more rows than
// tokens, as in an embedding that was padded to a multiple, the first rows are used. If there are fewer rows, the
// remaining tokens are initialised with the mean of their pieces. A note is logged in both cases.
ChosenTokens fitted_tokens(const WordPiece& reader, int rows, const std::string& source);

// Chooses all tokens that a model with this number of rows has, [PAD] first. If the vocabulary has no [PAD], adds one
// with the row of [UNK].
ChosenTokens pad_first(const WordPiece& reader, int rows);

// Throws BadInput if no model can be trained with these tokens: [PAD] must be the first one, and there must be [UNK],
// [CLS] and [SEP]. mend: a command that makes a vocabulary with [PAD] first, for the message.
void expect_trainable(const Vocabulary& vocabulary, const std::string& source, const std::string& mend);

}  // namespace masquerade
