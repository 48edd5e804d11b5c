// SPDX-License-Identifier: MIT
// Encodes a line: reads plain ASCII words directly and normalises all other words. Then splits each word into pieces,
// from left to right, always taking the longest piece that matches.
#include <algorithm>
#include <climits>
#include <cstring>

#include "input/utf8.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

namespace {

// Smallest size of the buffer ids_, in ids.
constexpr std::size_t room = 1024;

// Throws TokenizerError if an int cannot hold the offsets in the line.
void check_size(std::string_view line) {
    if (line.size() > INT_MAX)
        throw TokenizerError("a text of ", line.size(), " bytes, expected less than 2 GiB: cut it into lines");
}

}  // namespace

Encoder::Encoder(const WordPiece& tokenizer, int remembered)
    : of_(tokenizer), words_(tokenizer.characters()), spanned_(tokenizer.characters(), true), cache_(remembered) {}

// Visits a line word by word. Calls plain(word, begin, end) for each word that consists of ASCII letters and digits.
// Calls single(c, begin, end) for each character that may be a word by itself; single() returns whether it has encoded
// the character. Every word that neither plain() nor single() has encoded is normalised into `words`; then general() is
// called, which encodes words.text().
template <class Plain, class Single, class General>
void Encoder::walk(Words& words, Plain plain, Single single, General general) const {
    const Characters& characters = of_.characters_;
    const bool lower = characters.lowers(), digits = !characters.digits_alone();
    const std::string_view line = words.line();
    auto ends_word = [&](std::size_t i) {
        if (i == line.size()) return true;
        Characters::Kind kind = characters.kind(line[i]);
        return kind == Characters::space || kind == Characters::alone || kind == Characters::letter;
    };
    bool after_cased = false;
    for (std::size_t at = 0; at < line.size();) {
        switch (characters.kind(line[at])) {
            case Characters::space:
                at++;
                after_cased = false;
                continue;
            case Characters::letter: {
                PlainWord word = PlainWord::read(line, at, lower, digits);
                std::size_t end = at + word.length;
                if (!ends_word(end)) break;
                plain(word, at, end);
                after_cased = line[end - 1] > '9';
                at = end;
                continue;
            }
            case Characters::alone:
                if (!ends_word(at + 1) || !single(char32_t(line[at]), at, at + 1)) break;
                if (!characters[char32_t(line[at])].is(Character::ignorable)) after_cased = false;
                at++;
                continue;
            case Characters::dropped: at++; continue;
            case Characters::other:
                CodePoint c = decode_utf8(line, at);
                if (c.length == 0 || !single(c.value, at, at + c.length)) break;
                if (!characters[c.value].is(Character::ignorable)) after_cased = false;
                at += c.length;
                continue;
        }
        words.go_to(at, after_cased);
        if (!words.next()) return;
        general();
        at = words.at();
        after_cased = words.after_cased();
    }
}

// Calls emit(id, first byte, last byte + 1) for each piece of the word. Returns false if the whole word is [UNK],
// because the word is too long or, with Unknown::word, because no piece matches a part of the word. In this case, the
// caller must discard the pieces that were already emitted.
template <class Emit>
bool Encoder::split(std::string_view word, int length, Emit emit) const {
    if (length > of_.options_.max_word) return false;
    for (std::size_t begin = 0; begin < word.size();) {
        std::string_view rest = word.substr(begin);
        Trie::Match match = (begin == 0 ? of_.first_ : of_.later_).longest(rest);
        if (match.length == 0) {
            if (of_.options_.unknown == Unknown::word) return false;
            match = {int(decode_utf8(rest, 0).length), of_.vocabulary_.unk()};
        }
        emit(match.value, begin, begin + match.length);
        begin += match.length;
    }
    return true;
}

void Encoder::append(std::string_view line, Tokens& ids) {
    check_size(line);
    count_ = 0;
    if (!of_.in_text_.may_hold(line)) {
        append_text(line);
    } else {
        for (const AddedTokens::Part& part : of_.in_text_.split(line)) {
            make_room(line.size());
            if (part.id >= 0)
                ids_[count_++] = part.id;
            else
                append_text(line.substr(part.begin, part.end - part.begin));
        }
    }
    ids.insert(ids.end(), ids_.begin(), ids_.begin() + count_);
}

// Enlarges ids_, if necessary, so that `bytes` more ids fit. Adds room for one WordCache entry, because append_plain()
// copies whole entries, including their unused ids.
void Encoder::make_room(std::size_t bytes) {
    std::size_t needed = count_ + bytes + WordCache::most;
    if (ids_.size() < needed) ids_.resize(std::max({needed, 2 * ids_.size(), room}));
}

void Encoder::append_text(std::string_view text) {
    words_.begin(text);
    make_room(words_.line().size());
    auto plain = [&](const PlainWord& word, std::size_t begin, std::size_t end) {
        append_plain(word, words_.line().substr(begin, end - begin));
    };
    auto single = [&](char32_t c, std::size_t, std::size_t) {
        int id = of_.singles_[c] - 1;
        if (id >= 0) ids_[count_++] = id;
        return id >= 0;
    };
    auto general = [&] {
        make_room(words_.text().size() + words_.line().size() - words_.at());
        append_word(words_.text(), words_.length());
    };
    walk(words_, plain, single, general);
}

void Encoder::append_word(std::string_view word, int length) {
    std::size_t before = count_;
    if (split(word, length, [&](int id, int, int) { ids_[count_++] = id; })) return;
    ids_[before] = of_.vocabulary_.unk();
    count_ = before + 1;
}

void Encoder::append_plain(const PlainWord& word, std::string_view bytes) {
    if (word.length > WordCache::longest) {
        append_word(lower(bytes), word.length);
        return;
    }
    WordCache::Entry& entry = cache_.place(word);
    int* place = &ids_[count_];
    if (entry.low == word.low && entry.high == word.high) {
        std::memcpy(place, entry.ids, sizeof entry.ids);
        for (int id : entry.ids) count_ += id >= 0;
        return;
    }
    append_word(lower(bytes), word.length);
    const std::size_t count = &ids_[count_] - place;
    if (count > WordCache::most) return;
    entry = {word.low, word.high, {-1, -1, -1, -1}};
    std::copy_n(place, count, entry.ids);
}

// Returns a word of ASCII letters and digits, in lower case if the options say so. The result is valid until the next
// call of lower().
std::string_view Encoder::lower(std::string_view bytes) {
    lowered_.resize(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); i++) lowered_[i] = of_.characters_.letter_of(bytes[i]);
    return lowered_;
}

void Encoder::append(std::string_view line, std::vector<Piece>& pieces) {
    check_size(line);
    int word = 0;
    if (!of_.in_text_.may_hold(line)) return append_pieces(line, 0, word, pieces);
    for (const AddedTokens::Part& part : of_.in_text_.split(line)) {
        if (part.id >= 0)
            pieces.push_back({part.id, part.begin, part.end, word++});
        else
            append_pieces(line.substr(part.begin, part.end - part.begin), part.begin, word, pieces);
    }
}

void Encoder::append_pieces(std::string_view text, int offset, int& word, std::vector<Piece>& pieces) {
    Words& words = spanned_;
    words.begin(text);
    // Appends the pieces of the word `bytes`. span(begin, end) maps bytes [begin, end) of the word to bytes of
    // `text`.
    auto append = [&](std::string_view bytes, int length, auto span) {
        auto emit = [&](int id, int begin, int end) {
            Span from = span(begin, end);
            pieces.push_back({id, offset + from.begin, offset + from.end, word});
        };
        std::size_t before = pieces.size();
        if (!split(bytes, length, emit)) {
            pieces.resize(before);
            emit(of_.vocabulary_.unk(), 0, bytes.size());
        }
        word++;
    };
    auto plain = [&](const PlainWord&, std::size_t at, std::size_t end) {
        append(lower(words.line().substr(at, end - at)), end - at,
               [&](int first, int last) { return words.source(at + first, at + last); });
    };
    auto single = [&](char32_t c, std::size_t begin, std::size_t end) {
        // Leaves non-ASCII characters to general(), because the marks that follow a character belong to its piece.
        int id = c < 0x80 ? of_.singles_[c] - 1 : -1;
        if (id < 0) return false;
        const Span from = words.source(begin, end);
        pieces.push_back({id, offset + from.begin, offset + from.end, word++});
        return true;
    };
    auto general = [&] {
        const std::string& bytes = words.text();
        std::size_t at = 0, next = 0;  // end of the previous piece: `at` in bytes, `next` in code points
        append(bytes, words.length(), [&](int begin, int end) {
            auto count = [&](int from, int to) {
                return std::count_if(bytes.data() + from, bytes.data() + to, starts_code_point);
            };
            std::size_t first = std::size_t(begin) == at ? next : 0;
            next = first + count(begin, end);
            at = end;
            return Span{words.spans()[first].begin, words.spans()[next - 1].end};
        });
    };
    walk(words, plain, single, general);
}

}  // namespace masquerade
