// SPDX-License-Identifier: MIT
// Chooses which tokens of a trained ("old") model a new model keeps, and how the embeddings of further tokens are
// initialised. keep_tokens and compound_tokens of bert4keras do the same.
#pragma once
#include <string>
#include <vector>

#include "data/sentences.h"
#include "tokenizer/hugging_face/hugging_face.h"

namespace masquerade {

struct TokenChoice {
    Tokens keep;  // keep[i] is the old id of the token with the new id i; empty: all tokens are kept
    // Further tokens of the new model, which follow the kept tokens. compounds[i] lists kept tokens by their new ids.
    // The embedding of further token i is the mean of the embeddings of the tokens in compounds[i]. If this list is
    // empty, the embedding of [UNK] is used.
    std::vector<Tokens> compounds;
    int unk = -1;  // new id of [UNK], for empty lists in `compounds`; -1: there is no [UNK]
    int pad = -1;  // old id of the token whose embedding [PAD] gets; -1: pad_token_id of config.json

    int kept(int rows) const { return keep.empty() ? rows : int(keep.size()); }
    // Number of tokens of the new model if the old model has `rows` tokens.
    int size(int rows) const { return kept(rows) + int(compounds.size()); }
    // Throws BadInput unless these four conditions hold. All ids in `keep` are ids of the old model. All ids in
    // `compounds` are new ids of kept tokens. If a list in `compounds` is empty, `unk` is a kept token. If `keep` is
    // not empty, keep[0] is `pad` or, if `pad` is -1, `told`. `rows` is the number of tokens of the old model, and
    // `told` is pad_token_id of its config.json.
    void check(int rows, int told) const;
};

// Returns the embedding of the new model, a row for each token, computed from the embedding `from` of the old model,
// which has `rows` rows. Rows of kept tokens are copied unchanged. Also works for a bias with one number per token.
Numbers choose_rows(const TokenChoice& choice, const Numbers& from, int rows);

struct ChosenTokens {
    Vocabulary vocabulary;  // vocabulary of the new model
    TokenChoice choice;
};

// Chooses the tokens that simplify() of tokenizer/vocabulary_notes.h keeps, as load_vocab(simplified=True,
// startswith=first) of bert4keras does.
ChosenTokens simplified_tokens(const Vocabulary& vocabulary,
                               const Strings& first = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"},
                               const NormaliseOptions& options = {});

// Chooses the tokens of `wanted`, in this order. `model` is the tokenizer of the old model. Tokens that the old model
// lacks must come last; otherwise, throws BadInput. The tokenizer splits each of these new tokens into pieces. The
// embedding of a new token is the mean of the embeddings of its kept pieces. If no piece is kept, the embedding of
// [UNK] is used.
ChosenTokens wanted_tokens(const WordPiece& model, const Vocabulary& wanted);

// Returns the first `rows` tokens of a vocabulary, which are the tokens of a model whose embedding has `rows` rows.
Vocabulary first_tokens(const Vocabulary& vocabulary, int rows);
// Returns all tokens of a vocabulary, followed by the tokens of `more` that the vocabulary lacks.
Vocabulary with_more(Vocabulary vocabulary, const Strings& more);

// Returns a tokenizer with the vocabulary `tokens` and the options of `reader`. The added tokens of `reader` remain
// added tokens if the new vocabulary has them.
WordPiece with_tokens(const WordPiece& reader, Vocabulary tokens);

// Chooses all tokens of a tokenizer, for an old model whose embedding has `rows` rows. If there are more rows than
// tokens, because the embedding was padded to a round number, only the first rows are used. If there are fewer rows,
// the embeddings of the remaining tokens are computed from their pieces, as in wanted_tokens(). In both cases, a note
// is logged, in which `source` is the name of the model.
ChosenTokens fitted_tokens(const WordPiece& reader, int rows, const std::string& source);

// Chooses all tokens of a model whose embedding has `rows` rows, and puts [PAD] first. If the vocabulary has no [PAD],
// adds one with the embedding of [UNK].
ChosenTokens pad_first(const WordPiece& reader, int rows);

// Throws BadInput if no model can be trained with this vocabulary: [PAD] must be the first token, and there must be
// [UNK], [CLS] and [SEP]. For the message, `source` names the vocabulary, and `mend` is a command that makes one with
// [PAD] first.
void expect_trainable(const Vocabulary& vocabulary, const std::string& source, const std::string& mend);

}  // namespace masquerade
