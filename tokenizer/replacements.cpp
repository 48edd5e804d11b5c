// SPDX-License-Identifier: MIT
#include "tokenizer/replacements.h"

#include "input/input.h"
#include "input/lines.h"
#include "input/utf8.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

Replacements ascii_punctuation() {
    constexpr std::pair<std::u32string_view, const char*> rows[] = {
        {U"\u2018\u2019\u201A\u201B\u2032\u2039\u203A", "'"},
        {U"\u201C\u201D\u201E\u201F\u2033\u00AB\u00BB", "\""},
        {U"\u2010\u2011\u2012\u2013\u2212", "-"},
        {U"\u2014\u2015", "--"},
        {U"\u2026", "..."}};
    Replacements all;
    for (const auto& [characters, text] : rows)
        for (char32_t c : characters) all[c] = text;
    return all;
}

Replacements read_replacements(const std::string& path) {
    const std::string bytes = read_input<TokenizerError>(path);
    Replacements all;
    TextLines lines(bytes);
    for (std::string_view line; lines.next(line);) {
        if (line.empty()) continue;
        const CodePoint from = decode_utf8(line, 0);
        const std::size_t tab = from.length;
        if (tab == 0 || tab >= line.size() || line[tab] != '\t' || !is_utf8(line))
            throw TokenizerError(path, ", line ", lines.number(), ": \"", clipped(std::string(line)),
                                 "\" is no replacement; expected one character, a tab, and the text to read instead");
        all[from.value] = line.substr(tab + 1);
    }
    return all;
}

}  // namespace masquerade
