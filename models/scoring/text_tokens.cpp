// SPDX-License-Identifier: MIT
#include "models/scoring/text_tokens.h"

#include "tokenizer/utf8.h"

namespace masquerade {
namespace {

std::u32string decoded(std::string_view line) {
    std::u32string characters;
    for (std::size_t at = 0; at < line.size();) {
        const CodePoint c = decode_utf8(line, at);
        if (c.length > 0) characters += c.value;
        at += std::size_t(c.length > 0 ? c.length : 1);
    }
    return characters;
}

std::u32string replaced(const std::u32string& line, std::u32string_view what, std::u32string_view by) {
    std::u32string result;
    for (std::size_t at = 0; at < line.size();) {
        const std::size_t found = std::min(line.find(what, at), line.size());
        result.append(line, at, found - at);
        if (found < line.size()) result += by;
        at = found < line.size() ? found + what.size() : found;
    }
    return result;
}

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
bool is_stop(char32_t c) { return c == '.' || c == ','; }

// ASCII punctuation but ' , - .
bool is_set_apart(char32_t c) {
    return (c >= '!' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
           (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

// A space into every pair of neighbours that is meant, and one before or after the two. From the left, and
// what was in a pair is in no other, as a regular expression replaces.
template <class Meant>
std::u32string spaced(const std::u32string& line, bool before, Meant meant) {
    std::u32string result;
    for (std::size_t i = 0; i < line.size(); i++) {
        if (i + 1 == line.size() || !meant(line[i], line[i + 1])) {
            result += line[i];
            continue;
        }
        if (before) result += U' ';
        result += {line[i], U' ', line[i + 1]};
        if (!before) result += U' ';
        i++;
    }
    return result;
}

// The runs of characters that belong to words.
template <class Belongs>
std::vector<std::string> runs(const std::u32string& line, Belongs belongs) {
    std::vector<std::string> all;
    bool inside = false;
    for (char32_t c : line) {
        const bool was_inside = inside;
        inside = belongs(c);
        if (inside && !was_inside) all.emplace_back();
        if (inside) append_utf8(all.back(), c);
    }
    return all;
}

}  // namespace

bool is_white_space(char32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
           c == 0x3000;
}

std::u32string characters_of(std::string_view line) {
    std::u32string characters;
    for (char32_t c : decoded(line))
        if (!is_white_space(c)) characters += c;
    return characters;
}

std::vector<std::string> words_13a(std::string_view line) {
    std::u32string text = decoded(line);
    while (!text.empty() && is_white_space(text.back())) text.pop_back();
    text = replaced(replaced(replaced(text, U"<skipped>", U""), U"-\n", U""), U"\n", U" ");
    text = replaced(replaced(text, U"&quot;", U"\""), U"&amp;", U"&");
    text = replaced(replaced(text, U"&lt;", U"<"), U"&gt;", U">");
    std::u32string apart = U" ";
    for (char32_t c : text) is_set_apart(c) ? apart += {U' ', c, U' '} : apart += c;
    apart += U' ';
    text = spaced(apart, false, [](char32_t a, char32_t b) { return !is_digit(a) && is_stop(b); });
    text = spaced(text, true, [](char32_t a, char32_t b) { return is_stop(a) && !is_digit(b); });
    text = spaced(text, false, [](char32_t a, char32_t b) { return is_digit(a) && b == '-'; });
    return runs(text, [](char32_t c) { return !is_white_space(c); });
}

std::vector<std::string> rouge_words(std::string_view line) {
    std::u32string lowered;
    for (char32_t c : decoded(line)) {
        if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
        if (c == 0x212A) c = 'k';                    // the Kelvin sign; besides A-Z, only these two
        if (c == 0x130) lowered += U'i', c = 0x307;  // I with a dot above: i and a mark
        lowered += c;
    }
    return runs(lowered, [](char32_t c) { return is_digit(c) || (c >= 'a' && c <= 'z'); });
}

}  // namespace masquerade
