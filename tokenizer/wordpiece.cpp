// SPDX-License-Identifier: MIT
#include "tokenizer/wordpiece.h"

#include <algorithm>

#include "tokenizer/utf8.h"

namespace masquerade {

namespace {

// Of a vocabulary's tokens those that begin words, or those that continue them. Nothing is lost by keeping
// "##" out of the first: words hold no "#" but the word "#". Nor by leaving out what is longer than any word.
std::vector<Trie::Entry> entries(const Vocabulary& vocabulary, bool continuing, int max_word) {
    std::vector<Trie::Entry> chosen;
    for (int id = 0; id < vocabulary.size(); id++) {
        std::string_view token = vocabulary.token(id);
        if (continues(token) == continuing && token.size() / 4 <= std::size_t(max_word))
            chosen.push_back({token.substr(continuing ? 2 : 0), id});
    }
    return chosen;
}

NormaliseOptions normalising(const WordPiece::Options& options) {
    return {options.lower, options.single_digits};
}

}  // namespace

WordPiece::WordPiece(Vocabulary vocabulary, Options options)
    : vocabulary_(std::move(vocabulary)),
      options_(options),
      first_(entries(vocabulary_, false, options.max_word)),
      later_(entries(vocabulary_, true, options.max_word)) {
    if (options_.max_word < 1)
        throw TokenizerError("max_word is " + std::to_string(options_.max_word) + ", expected 1 or more");
    if (vocabulary_.unk() < 0)
        throw TokenizerError("the vocabulary has no [UNK]: is it a WordPiece vocabulary?");
}

// emit(id, first byte, last byte + 1) for each piece of the word; false where the word is too long, or where
// some part of it matches nothing: then the whole word is [UNK].
template <class Emit>
bool WordPiece::split(const Words& word, Emit emit) const {
    if (word.length() > options_.max_word) return false;
    std::string_view rest = word.text();
    for (int begin = 0; !rest.empty();) {
        Trie::Match match = (begin == 0 ? first_ : later_).longest(rest);
        if (match.length == 0) return false;
        emit(match.value, begin, begin + match.length);
        begin += match.length;
        rest.remove_prefix(std::size_t(match.length));
    }
    return true;
}

std::vector<int> WordPiece::encode(std::string_view line) const {
    std::vector<int> ids;
    for (Words word(line, normalising(options_)); word.next();) {
        std::size_t before = ids.size();
        if (!split(word, [&](int id, int, int) { ids.push_back(id); })) {
            ids.resize(before);
            ids.push_back(vocabulary_.unk());
        }
    }
    return ids;
}

std::vector<Piece> WordPiece::encode_pieces(std::string_view line) const {
    std::vector<Piece> pieces;
    int number = 0;
    for (Words word(line, normalising(options_), true); word.next(); number++) {
        std::size_t before = pieces.size(), next = 0;  // next: the first code point of the next piece
        bool known = split(word, [&](int id, int begin, int end) {
            std::size_t first = next;
            const char* text = word.text().data();
            next += std::size_t(std::count_if(text + begin, text + end, starts_code_point));
            pieces.push_back({id, word.spans()[first].begin, word.spans()[next - 1].end, number});
        });
        if (!known) {
            pieces.resize(before);
            pieces.push_back(
                {vocabulary_.unk(), word.spans().front().begin, word.spans().back().end, number});
        }
    }
    return pieces;
}

}  // namespace masquerade
