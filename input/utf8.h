// SPDX-License-Identifier: MIT
// Decodes and encodes UTF-8, one code point at a time. Invalid bytes (stray continuation bytes, overlong forms,
// surrogates, numbers beyond U+10FFFF) are not an error: decode_utf8() returns length 0, and the caller skips one byte,
// as Python's decode("utf-8", "ignore") does.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

namespace masquerade {

struct CodePoint {
    char32_t value;
    unsigned length;  // in bytes; 0 if no valid code point starts at this position
    std::size_t step() const { return std::max(length, 1u); }  // bytes to the next code point
};

// Decodes the code point that starts at s[at]. `at` must be less than s.size().
inline CodePoint decode_utf8(std::string_view s, std::size_t at) {
    auto byte = [&](std::size_t i) { return at + i < s.size() ? char32_t((unsigned char)s[at + i]) : 0; };
    auto follows = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
    char32_t b = byte(0);
    if (b < 0x80) return {b, 1};
    if (b >= 0xC2 && b < 0xE0 && follows(1)) return {(b & 0x1F) << 6 | (byte(1) & 0x3F), 2};
    if (b >= 0xE0 && b < 0xF0 && follows(1) && follows(2)) {
        char32_t c = (b & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
        if (c >= 0x800 && (c < 0xD800 || c > 0xDFFF)) return {c, 3};
    }
    if (b >= 0xF0 && b < 0xF5 && follows(1) && follows(2) && follows(3)) {
        char32_t c = (b & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
        if (c >= 0x10000 && c <= 0x10FFFF) return {c, 4};
    }
    return {0, 0};
}

inline void append_utf8(std::string& s, char32_t c) {
    if (c < 0x80) {
        s += char(c);
    } else if (c < 0x800) {
        s += char(0xC0 | c >> 6);
        s += char(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        s += char(0xE0 | c >> 12);
        s += char(0x80 | (c >> 6 & 0x3F));
        s += char(0x80 | (c & 0x3F));
    } else {
        s += char(0xF0 | c >> 18);
        s += char(0x80 | (c >> 12 & 0x3F));
        s += char(0x80 | (c >> 6 & 0x3F));
        s += char(0x80 | (c & 0x3F));
    }
}

inline std::string to_utf8(std::u32string_view text) {
    std::string bytes;
    for (char32_t c : text) append_utf8(bytes, c);
    return bytes;
}

// Calls use(code point, its bytes) for each code point. The text must be valid UTF-8; otherwise, the loop never ends.
template <class Use>
void each_character(std::string_view s, Use use) {
    for (std::size_t at = 0; at < s.size();) {
        CodePoint c = decode_utf8(s, at);
        use(c.value, s.substr(at, c.length));
        at += c.length;
    }
}

// Returns the code points of a text. Bytes that are not UTF-8 are skipped.
inline std::u32string code_points(std::string_view text) {
    std::u32string all;
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint c = decode_utf8(text, at);
        if (c.length > 0) all += c.value;
        at += c.step();
    }
    return all;
}

inline bool is_utf8(std::string_view s) {
    for (std::size_t at = 0, length; at < s.size(); at += length)
        if (length = decode_utf8(s, at).length; length == 0) return false;
    return true;
}

// Whether a byte of valid UTF-8 is the first byte of a code point. A text has as many code points as first bytes.
inline bool starts_code_point(char byte) { return (byte & 0xC0) != 0x80; }

// Returns the code point whose last byte is text[end - 1]. `end` must be positive, and the text must be valid UTF-8.
inline CodePoint code_point_before(std::string_view text, std::size_t end) {
    std::size_t begin = end - 1;
    while (begin > 0 && !starts_code_point(text[begin])) begin--;
    return decode_utf8(text, begin);
}

}  // namespace masquerade
