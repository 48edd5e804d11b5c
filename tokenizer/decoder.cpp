// SPDX-License-Identifier: MIT
// Decodes ids to text: joins pieces to words and inserts spaces.
#include <algorithm>

#include "input/utf8.h"
#include "tokenizer/canonical.h"
#include "tokenizer/spacing.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

// Fills the sets that decode() uses: silent_, guarded_, never_joined_ and joins_digits_.
void WordPiece::prepare_decoding() {
    for (const AddedToken& token : special_added(vocabulary_)) silent_.insert(token.id);
    for (const AddedToken& token : added_) {
        if (token.special) silent_.insert(token.id);
        if (!recognises(token)) continue;
        if (token.single_word) guarded_.insert(token.id);
        // If decode() wrote two words without a space between them, the text of an added token could arise, and
        // encoding would find this token instead of the two words. never_joined_ lists the texts that must not arise in
        // this way. normalise() puts spaces around ideographs, but decode() writes none there. Spaces are therefore
        // removed from the texts; otherwise, these texts would never be found in joined words. never_joined_ cannot
        // protect against a token that contains a space, because its text can arise from two words with a space between
        // them.
        std::string text = token.normalised ? normalise(token.text, characters_).text : token.text;
        text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
        if (!text.empty()) never_joined_.push_back(std::move(text));
    }
    auto has_digit = [](const std::string& text) { return std::any_of(text.begin(), text.end(), is_digit); };
    joins_digits_ = characters_.digits_alone() && std::none_of(never_joined_.begin(), never_joined_.end(), has_digit);
    for (int written : {vocabulary_.unk(), vocabulary_.mask()}) silent_.erase(written);
}

std::string WordPiece::reading(std::string_view line) const {
    Tokens ids;
    Strings unknown;  // the normalised text of each part of the line that became [UNK]
    for (const Piece& piece : encode_pieces(line)) {
        ids.push_back(piece.id);
        if (piece.id != vocabulary_.unk()) continue;
        unknown.emplace_back();
        for (Words words(line.substr(piece.begin, piece.end - piece.begin), characters_); words.next();)
            unknown.back() += words.text();
    }
    return decode(ids, unknown);
}

std::string WordPiece::decode(const Tokens& ids, const Strings& unknown) const {
    std::size_t next = 0;  // index into `unknown` for the next [UNK]
    std::vector<SpacedWord> words;
    words.reserve(ids.size());
    bool open = false;  // whether a continuation piece or a digit may be appended to words.back()
    for (int id : ids) {
        const bool written = id == vocabulary_.unk() && next < unknown.size();
        const std::string& token = written ? unknown[next++] : vocabulary_.token(id);
        const bool silent = silent_.count(id) > 0;
        const bool digit = joins_digits_ && open && token.size() == 1 && is_digit(char32_t(token[0])) &&
                           is_digit(char32_t(words.back().text.back()));
        if (open && !silent && (digit || (!written && continues(token)))) {
            words.back().text.append(token, digit ? 0 : 2);
            continue;
        }
        open = !silent && !token.empty();
        if (!open) continue;
        words.push_back({token, guarded_.count(id) > 0 ? SpacedWord::Kind::guarded : SpacedWord::Kind::ordinary});
    }
    for (SpacedWord& word : words) {
        const CodePoint first = decode_utf8(word.text, 0);
        const bool one = first.length == word.text.size();
        word.first = first.value;
        word.last = one ? first.value : code_point_before(word.text, word.text.size()).value;
        const bool plain = word.kind == SpacedWord::Kind::ordinary && one && !is_digit(first.value);
        if (plain && characters_[first.value].is(Character::alone)) word.kind = SpacedWord::Kind::alone;
    }
    return composed(with_spaces(std::move(words), never_joined_));
}

// Returns the text in NFC, because encoding may have decomposed it. A stretch of the text (see nfc()) is composed only
// if normalise() returns the same result for the composed stretch as for the original one. (If accents are not
// stripped, the two results may differ.) If composition would change which added tokens are recognised, the whole text
// is returned unchanged.
std::string WordPiece::composed(std::string text) const {
    const auto same = [&](std::string_view before, std::string_view after) {
        return normalise(before, characters_).text == normalise(after, characters_).text;
    };
    std::string all = nfc(text, same);
    if (in_text_.empty() || all == text) return all;
    const auto recognised = [&](const std::string& line) {
        Tokens ids;
        for (const AddedTokens::Part& part : in_text_.split(line))
            if (part.id >= 0) ids.push_back(part.id);
        return ids;
    };
    return recognised(all) == recognised(text) ? all : text;
}

// Unlike decode(), takes the spaces from `line` instead of guessing them.
std::string WordPiece::spelled(std::string_view line, const std::vector<Piece>& pieces) const {
    std::string text;
    for (std::size_t i = 0; i < pieces.size(); i++) {
        const std::string& token = vocabulary_.token(pieces[i].id);
        const bool inside = i > 0 && pieces[i].word == pieces[i - 1].word;
        bool space = false;
        if (i > 0 && !inside) {
            const auto gap = line.substr(pieces[i - 1].end, pieces[i].begin - pieces[i - 1].end);
            for (char32_t c : code_points(gap)) space |= characters_[c].is(Character::space);
        }
        if (space) text += ' ';
        text.append(token, inside && continues(token) ? 2 : 0);
    }
    return composed(std::move(text));
}

}  // namespace masquerade
