// SPDX-License-Identifier: MIT
#include "tokenizer/wordpiece.h"

#include <algorithm>

#include "input/utf8.h"

namespace masquerade {

namespace {

// Returns the tokens that begin words or, if `continuing`, the tokens that continue words, without their "##". A
// token with "##" never begins a word, because "#" is always a word by itself. Skips tokens that can never match:
// tokens that are longer than any word, that are not UTF-8, or that are only added tokens (AddedToken::beyond).
std::vector<Trie::Entry> entries(const Vocabulary& vocabulary, const std::vector<bool>& beyond, bool continuing,
                                 int max_word) {
    std::vector<Trie::Entry> chosen;
    for (int id = 0; id < vocabulary.size(); id++) {
        std::string_view token = vocabulary.token(id);
        if (continues(token) == continuing && token.size() / 4 <= std::size_t(max_word) && !beyond[id] &&
            is_utf8(token))
            chosen.push_back({token.substr(continuing ? 2 : 0), id});
    }
    return chosen;
}

// Returns a vector whose element [id] is true if the token is an added token with AddedToken::beyond. Words are never
// split into such tokens.
std::vector<bool> ids_beyond(const Vocabulary& vocabulary, const std::vector<AddedToken>& added) {
    std::vector<bool> beyond(vocabulary.size());
    for (const AddedToken& token : added)
        if (token.beyond && token.id >= 0 && token.id < vocabulary.size()) beyond[token.id] = true;
    return beyond;
}

}  // namespace

WordPiece::WordPiece(Vocabulary vocabulary, Options options, std::vector<AddedToken> added)
    : vocabulary_(std::move(vocabulary)),
      options_(std::move(options)),
      characters_(options_),
      added_(std::move(added)),
      beyond_(ids_beyond(vocabulary_, added_)),
      first_(entries(vocabulary_, beyond_, false, options_.max_word)),
      later_(entries(vocabulary_, beyond_, true, options_.max_word)) {
    if (options_.max_word < 1) throw TokenizerError("max_word is ", options_.max_word, ", expected 1 or more");
    if (vocabulary_.unk() < 0) throw TokenizerError("the vocabulary has no [UNK]: is it a WordPiece vocabulary?");
    for (int id = 0; id < vocabulary_.size(); id++)
        if (!beyond_[id]) add_single(id);
    if (added_.empty())
        for (const char* token : special_tokens)
            if (int id = vocabulary_.id(token); id >= 0) added_.push_back({token, id});
    in_text_ = AddedTokens(added_, characters_, options_.recognise_special);
    prepare_decoding();
}

// Stores the id in singles_ if the token is a single character that is always a word by itself and that normalisation
// does not change.
void WordPiece::add_single(int id) {
    std::string_view token = vocabulary_.token(id);
    CodePoint c = token.empty() ? CodePoint{} : decode_utf8(token, 0);
    Character what = characters_[c.value];
    const bool single = c.length > 0 && c.length == token.size() && what.is(Character::alone);
    if (single && !what.is(Character::expands) && (what.to == 0 || what.to == c.value)) singles_.at(c.value) = id + 1;
}

void to_code_points(std::string_view line, std::vector<Piece>& pieces) {
    std::vector<int> before(line.size() + 1);  // before[i]: number of code points in the first i bytes
    for (std::size_t at = 0; at < line.size();) {
        const CodePoint c = decode_utf8(line, at);
        at += c.step();
        before[at] += c.length > 0;
    }
    for (std::size_t i = 1; i < before.size(); i++) before[i] += before[i - 1];
    for (Piece& piece : pieces) {
        piece.begin = before[piece.begin];
        piece.end = before[piece.end];
    }
}

Tokens WordPiece::encode(std::string_view line) const {
    Tokens ids;
    Encoder(*this, 1).append(line, ids);
    return ids;
}

std::vector<Piece> WordPiece::encode_pieces(std::string_view line) const {
    std::vector<Piece> pieces;
    Encoder(*this, 1).append(line, pieces);
    return pieces;
}

}  // namespace masquerade
