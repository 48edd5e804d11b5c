// SPDX-License-Identifier: MIT
// Escapes text that comes from outside the program, such as file names and messages, so that the text can neither end
// a line nor control the program that displays it. There are functions for terminals, for HTML and SVG, and for
// shells.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "input/utf8.h"

namespace masquerade {

// Returns true if c is a control character, a line or paragraph separator, or a mark that changes the direction of
// writing.
inline bool steers(char32_t c) {
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

inline std::string escape(const char* begin, std::uint32_t value, int digits) {
    std::string s = begin;
    for (int i = digits - 1; i >= 0; i--) s += "0123456789abcdef"[value >> 4 * i & 15];
    return s;
}

// Returns the text as one printable line. Control characters become escapes such as \n or \u001b; a byte that is not
// UTF-8 becomes an escape such as \xff. If the text has more than `most` bytes, " ... " replaces its middle.
// Printable text of at most `most` bytes is returned unchanged.
inline std::string printable(std::string_view words, std::size_t most = 4000) {
    std::string short_form;
    if (words.size() > most) {
        std::size_t left_out = most / 2, go_on = words.size() - most / 2;
        while (left_out > 0 && !starts_code_point(words[left_out])) left_out--;
        while (go_on < words.size() && !starts_code_point(words[go_on])) go_on++;
        words = short_form = std::string(words.substr(0, left_out)).append(" ... ").append(words.substr(go_on));
    }
    std::string s;
    for (std::size_t at = 0, bytes; at < words.size(); at += bytes) {
        const CodePoint c = decode_utf8(words, at);
        bytes = c.step();
        if (c.length == 0)
            s += escape("\\x", std::uint8_t(words[at]), 2);
        else if (!steers(c.value))
            s.append(words, at, bytes);
        else if (c.value == '\n')
            s += "\\n";
        else if (c.value == '\t')
            s += "\\t";
        else if (c.value == '\r')
            s += "\\r";
        else
            s += escape("\\u", c.value, 4);
    }
    return s;
}

// Returns the lines with printable() applied to each of them. No line is shortened.
inline std::string printable_lines(std::string_view lines) {
    std::string s;
    for (std::size_t begin = 0, end; begin < lines.size(); begin = end + 1) {
        end = lines.find('\n', begin);
        s += printable(lines.substr(begin, end - begin), lines.size());
        if (end == lines.npos) break;
        s += '\n';
    }
    return s;
}

// Escapes text for HTML and SVG, so that characters such as < are displayed and not read as markup. Control characters
// are escaped as in printable().
inline std::string letters(std::string_view words) {
    std::string s;
    for (char c : printable(words, words.size()))
        s += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
    return s;
}

// Quotes a word for a shell command that the user may copy. bash and zsh read the result as exactly the bytes of the
// word.
inline std::string shell_quoted(const std::string& word) {
    constexpr const char* plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+,=-";
    // zsh replaces a word that begins with "=" by the path of a program.
    if (!word.empty() && word[0] != '=' && word.find_first_not_of(plain) == word.npos) return word;
    if (printable(word, word.size()) == word) {
        std::string s = "'";
        for (char c : word) s += c == '\'' ? "'\\''" : std::string(1, c);
        return s + "'";
    }
    std::string s = "$'";
    for (char c : word) {
        const bool letter = c >= ' ' && c < 0x7F && c != '\'' && c != '\\' && c != '!';
        s += letter ? std::string(1, c) : escape("\\x", std::uint8_t(c), 2);
    }
    return s + "'";
}

// Quotes a path in the same way. If the path begins with "-", "./" is put in front of it, so that it does not look like
// an option.
inline std::string shell_word(const std::string& path) {
    return shell_quoted(path.substr(0, 1) == "-" ? "./" + path : path);
}

}  // namespace masquerade
