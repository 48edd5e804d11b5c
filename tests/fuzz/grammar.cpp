// SPDX-License-Identifier: MIT
#include "tests/fuzz/grammar.h"

#include <algorithm>

#include "input/utf8.h"
#include "tests/fuzz/subject.h"

namespace masquerade::fuzz {

namespace {

// Spaces, characters similar to spaces, characters that the tokenizer drops, and joiners.
const char32_t invisible[] = {' ',    ' ',    ' ',    '\t',   '\n',   '\r',   0,      0x0B,   0x0C,   0x1C,   0x1F,
                              0x7F,   0x85,   0xA0,   0xAD,   0x1680, 0x180E, 0x2003, 0x200B, 0x200D, 0x200E, 0x2028,
                              0x2029, 0x202F, 0x2060, 0x3000, 0xFE0F, 0xFEFF, 0xFFFD, 0xFFFE, 0xE0001};

// Combining marks of every class, some of which are not stripped.
const char32_t marks[] = {0x300,  0x301,  0x308,   0x323,   0x327,   0x338,   0x340,   0x344,   0x345,   0x34F,
                          0x5B0,  0x64B,  0x93C,   0x94D,   0x1715,  0x1734,  0x1B44,  0x302E,  0x302F,  0x3099,
                          0x20E3, 0xA953, 0x1D165, 0x1D166, 0x1D16D, 0x1D172, 0x11938, 0x1193D, 0x16FF0, 0x1E2AE};

}  // namespace

std::uint64_t Grammar::random() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

// Appends one of the vocabulary's code points or, sometimes, any code point, also a surrogate, which is not valid
// UTF-8.
void Grammar::append_point(std::string& text) {
    const Block& block = blocks()[below(blocks().size())];
    char32_t c = block.first + char32_t(below(block.last - block.first + 1));
    if (!tame_ && one_in(6)) c = char32_t(below(one_in(2) ? 0x3400 : 0x110000));
    append_utf8(text, c);
}

// Appends the same few pieces many times.
void Grammar::append_run(std::string& text) {
    std::string piece;
    for (std::size_t n = 1 + below(3); n > 0; n--) append_piece(piece);
    if (piece.size() > 40) return;
    std::size_t times = one_in(50) ? below(3000) : below(12);
    for (; times > 0; times--) text += piece;
}

void Grammar::append_piece(std::string& text) {
    auto one_of = [&](const auto& all) { return all[below(std::size(all))]; };
    switch (below(tame_ ? 9 : 16)) {
        case 0:
        case 1:
        case 2: text += one_of(fragments()); return;
        case 3:
        case 4: append_point(text); return;
        case 5:
        case 6: text += ' '; return;
        case 7:
        case 8:
            if (one_in(4)) text += one_in(2) ? "electric" : "electricelectric";  // words with equal first bytes
            for (std::size_t n = 1 + below(one_in(8) ? 40 : 9); n > 0; n--)
                text += "etaoinshrdluETAOINSHRDLU0123456789"[below(34)];
            return;
        case 9: append_utf8(text, one_of(invisible)); return;
        case 10:
            for (std::size_t n = 1 + below(4); n > 0; n--) append_utf8(text, one_of(marks));
            return;
        case 11: text += "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"[below(32)]; return;
        case 12:  // incomplete UTF-8
            append_point(text);
            if (!text.empty()) text.pop_back();
            return;
        case 13: text += char(random()); return;
        case 14: append_utf8(text, 0xAC00 + char32_t(below(11172))); return;
        case 15: append_utf8(text, one_in(2) ? 0x3A3 : 0x4E00 + char32_t(below(64))); return;
    }
}

std::string Grammar::text() {
    std::string text;
    if (one_in(40)) {  // random bytes
        for (std::size_t n = below(60); n > 0; n--) text += char(random());
        return text;
    }
    tame_ = one_in(3);
    std::size_t pieces = one_in(500) ? below(3000) : 1 + below(one_in(4) ? 60 : 12);
    for (; pieces > 0; pieces--) one_in(12) ? append_run(text) : append_piece(text);
    if (one_in(5000)) {  // one very long word, or line
        std::string part = text.substr(0, 30);
        while (text.size() < 300000 && !part.empty()) text += part;
    }
    return text;
}

std::string Grammar::mutated(std::string text, const std::string& other) {
    tame_ = one_in(3);
    for (std::size_t n = 1 + below(4); n > 0; n--) {
        std::size_t at = below(text.size() + 1), count = below(std::min<std::size_t>(text.size() - at, 20) + 1);
        std::string piece;
        switch (below(7)) {
            case 0: text.erase(at, count); break;
            case 1:
                append_piece(piece);
                text.insert(at, piece);
                break;
            case 2:
                if (at < text.size()) text[at] = char(random());
                break;
            case 3: text.insert(below(text.size() + 1), text.substr(at, count)); break;
            case 4: text.insert(at, other.substr(below(other.size() + 1), 1 + below(30))); break;
            case 5:
                append_piece(piece);
                text.replace(at, count, piece);
                break;
            case 6: text.insert(at, 1, ' '); break;
        }
    }
    return text;
}

}  // namespace masquerade::fuzz
