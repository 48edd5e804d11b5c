// SPDX-License-Identifier: MIT
#include "tokenizer/wordpiece.h"

#include "input/utf8.h"

namespace masquerade {

WordPiece::WordPiece(Vocabulary vocabulary, Options options, std::vector<AddedToken> added)
    : vocabulary_(std::move(vocabulary)),
      options_(std::move(options)),
      characters_(options_),
      added_(std::move(added)) {
    if (options_.max_word < 1) throw TokenizerError("max_word is ", options_.max_word, ", expected 1 or more");
    if (vocabulary_.unk() < 0) throw TokenizerError("the vocabulary has no [UNK]: is it a WordPiece vocabulary?");
    std::vector<bool> beyond(vocabulary_.size());
    for (const AddedToken& token : added_)
        if (token.beyond && token.id >= 0 && token.id < vocabulary_.size()) beyond[token.id] = true;
    // A token with "##" never begins a word, because "#" is always a word by itself. Tokens that can never match are
    // skipped: tokens that are longer than any word, that are not UTF-8, or that are only added tokens.
    std::vector<Trie::Entry> first, later;
    for (int id = 0; id < vocabulary_.size(); id++) {
        const std::string_view token = vocabulary_.token(id);
        if (beyond[id]) continue;
        add_single(id);
        if (token.size() / 4 > std::size_t(options_.max_word) || !is_utf8(token)) continue;
        if (continues(token))
            later.push_back({token.substr(2), id});
        else
            first.push_back({token, id});
    }
    first_ = Trie(std::move(first));
    later_ = Trie(std::move(later));
    if (added_.empty()) added_ = special_added(vocabulary_);
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
