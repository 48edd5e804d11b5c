// SPDX-License-Identifier: MIT
#include "tokenizer/replacements.h"

#include <sstream>

#include "input/input.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

Replacements ascii_punctuation() {
    Replacements all;
    for (char32_t c : std::u32string_view(U"\u2018\u2019\u201A\u201B\u2032\u2039\u203A"))
        all.push_back({c, U"'"});
    for (char32_t c : std::u32string_view(U"\u201C\u201D\u201E\u201F\u2033\u00AB\u00BB"))
        all.push_back({c, U"\""});
    for (char32_t c : std::u32string_view(U"\u2010\u2011\u2012\u2013\u2212")) all.push_back({c, U"-"});
    for (char32_t c : std::u32string_view(U"\u2014\u2015")) all.push_back({c, U"--"});
    all.push_back({U'\u2026', U"..."});
    return all;
}

Replacements read_replacements(const std::string& path) {
    std::istringstream file(read_input<TokenizerError>(path));
    Replacements all;
    int number = 1;
    for (std::string line; std::getline(file, line); number++) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (line.empty()) continue;
        CodePoint from = decode_utf8(line, 0);
        std::size_t at = std::size_t(from.length);
        bool valid = from.length > 0 && at < line.size() && line[at] == '\t';
        std::u32string to;
        for (at++; valid && at < line.size();) {
            CodePoint c = decode_utf8(line, at);
            valid = c.length > 0;
            to += c.value;
            at += std::size_t(c.length);
        }
        if (!valid)
            throw TokenizerError(
                path + ", line " + std::to_string(number) + ": \"" + clipped(line) +
                "\" is no replacement; expected one character, a tab, and the text to read instead");
        all.push_back({from.value, to});
    }
    return all;
}

}  // namespace masquerade
