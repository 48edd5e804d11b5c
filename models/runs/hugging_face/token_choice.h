// SPDX-License-Identifier: MIT
// Which tokens of a trained model another one takes over, and what the rows of new ones start from:
// keep_tokens and compound_tokens of bert4keras.
#pragma once
#include <string>
#include <vector>

#include "tokenizer/hugging_face/hugging_face.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

struct TokenChoice {
    std::vector<int> keep;  // [new id]: the old id; empty: all stay as they are
    // The tokens that follow: each is the mean of kept ones, which have their new ids here; of none: as [UNK].
    std::vector<std::vector<int>> compounds;
    int unk = -1;  // new id of [UNK], for empty compounds
    int pad = -1;  // old id of the token whose row [PAD] takes; -1: config.json says it

    int kept(int rows) const { return keep.empty() ? rows : int(keep.size()); }
    // Tokens of the new model, where the old one has `rows`.
    int size(int rows) const { return kept(rows) + int(compounds.size()); }
    // BadInput where an id is not there, or [PAD] is not the new id 0. told: its old id by config.json.
    void check(int rows, int told) const;
};

// (V,E), the rows of the new tokens, by (rows,E), those of the old ones. Kept rows stay bit by bit.
std::vector<double> choose_rows(const TokenChoice& choice, const std::vector<double>& from, int rows);

struct ChosenTokens {
    Vocabulary vocabulary;  // of the new model
    TokenChoice choice;
};

// The tokens that simplify() of tokenizer/vocabulary_notes.h keeps: as load_vocab(simplified=True, startswith=first) of
// bert4keras.
ChosenTokens simplified_tokens(const Vocabulary& vocabulary,
                               const std::vector<std::string>& first = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"});

// The tokens of `wanted`, as many of them as the model has kept, in the order of `wanted`. Tokens that the
// model lacks come after all that it has: BadInput. They start as the mean of the pieces in which the model's
// tokenizer reads them, of those that are kept, or as [UNK].
ChosenTokens wanted_tokens(const WordPiece& model, const Vocabulary& wanted);

// The first tokens of a vocabulary: those that a model with so many rows knows.
Vocabulary first_tokens(const Vocabulary& vocabulary, int rows);

// A tokenizer from elsewhere as training uses it: "[SEP]" in a training text is text.
WordPiece training_tokenizer(HuggingFace read);

// A tokenizer that reads text in the same way with other tokens: the added tokens among them are recognised as before.
WordPiece with_tokens(const WordPiece& reader, Vocabulary tokens);

// All tokens of a tokenizer, for a model whose embedding has this number of rows. If there are more rows than tokens,
// as in an embedding that was padded to a multiple, the first ones are taken; if there are fewer, the other tokens
// start as the mean of their pieces. Either is logged in one note.
ChosenTokens fitted_tokens(const WordPiece& reader, int rows, const std::string& source);

// All tokens that a model with this number of rows knows, [PAD] first. A vocabulary without [PAD] gets one.
ChosenTokens pad_first(const WordPiece& reader, int rows);

// BadInput if no model can be trained with these tokens: [PAD] must be the first one, and [UNK], [CLS] and [SEP] must
// be there.
// mend: a command that makes a vocabulary with [PAD] first.
void expect_trainable(const Vocabulary& vocabulary, const std::string& source, const std::string& mend);

}  // namespace masquerade
