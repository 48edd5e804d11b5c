// SPDX-License-Identifier: MIT
#include "tokenizer/canonical.h"

#include <algorithm>
#include <unordered_map>

#include "input/utf8.h"
#include "tokenizer/code_point_table.h"

namespace masquerade {

namespace {

using namespace hangul;
using unicode::Map;

bool in_range(char32_t c, char32_t first, char32_t count) { return c - first < count; }

constexpr std::uint64_t pair_of(char32_t first, char32_t second) { return std::uint64_t(first) << 32 | second; }

struct Tables {
    Map decompositions;  // the full canonical decomposition of each code point that has one
    // pair_of(two characters) -> the character that NFC composes from them.
    std::unordered_map<std::uint64_t, char32_t> composed;
    CodePointTable<std::uint8_t> classes;
    CodePointTable<std::uint8_t> unstable;  // whether NFC may change the code point or join it to the text before it

    Tables() {
        Map steps;
        unicode::add(unicode::decomposition, steps);
        for (const auto& [c, parts] : steps) decompositions[c] = full(parts, steps);
        for (const auto& [c, parts] : steps)
            if (parts.size() == 2) composed[pair_of(parts[0], parts[1])] = c;
        unicode::each_range(unicode::combining_classes, [&](char32_t first, char32_t last, char32_t value) {
            for (char32_t c = first; c <= last; c++) classes.at(c) = std::uint8_t(value), mark(c);
        });
        unicode::each_range(unicode::never_composed, [&](char32_t first, char32_t last, char32_t) {
            for (char32_t c = first; c <= last; c++) {
                composed.erase(pair_of(steps[c][0], steps[c][1]));
                mark(c);
            }
        });
        for (const auto& [c, parts] : steps)
            if (parts.size() == 1) mark(c);
        for (const auto& [parts, c] : composed) mark(char32_t(parts));  // the low 32 bits are the second character
        for (char32_t i = 0; i < vowels; i++) mark(vowel + i);
        for (char32_t i = 1; i < finals; i++) mark(before_final + i);
    }

    static std::u32string full(const std::u32string& parts, const Map& steps) {
        std::u32string all;
        for (char32_t part : parts) {
            const auto found = steps.find(part);
            all += found == steps.end() ? std::u32string(1, part) : full(found->second, steps);
        }
        return all;
    }

    void mark(char32_t c) { unstable.at(c) = true; }
};

const Tables& tables() {
    static const Tables all;
    return all;
}

std::u32string decomposed(const std::u32string& text) {
    std::u32string all;
    for (char32_t c : text) {
        if (in_range(c, syllable, syllables)) {
            decompose(c, [&](char32_t part) { all += part; });
            continue;
        }
        const auto found = tables().decompositions.find(c);
        if (found != tables().decompositions.end())
            all += found->second;
        else
            all += c;
    }
    for (std::size_t begin = 0; begin < all.size();) {  // sorts the marks by combining class
        std::size_t end = begin + 1;
        while (end < all.size() && combining_class(all[end]) > 0) end++;
        const std::size_t marks = begin + (combining_class(all[begin]) == 0);  // skips the starter (class 0), if any
        sort_by_class(&all[marks], &all[end]);
        begin = end;
    }
    return all;
}

// Returns the character that is composed of `first` and `second`; 0 if there is none.
char32_t composite(char32_t first, char32_t second) {
    if (in_range(first, initial, initials) && in_range(second, vowel, vowels))
        return syllable + ((first - initial) * vowels + (second - vowel)) * finals;
    if (in_range(first, syllable, syllables) && (first - syllable) % finals == 0 &&
        in_range(second, before_final + 1, finals - 1))
        return first + (second - before_final);
    const auto found = tables().composed.find(pair_of(first, second));
    return found == tables().composed.end() ? 0 : found->second;
}

// Composes each character with the nearest starter (character of combining class 0) before it, unless a character in
// between blocks the composition.
std::u32string composed(const std::u32string& text) {
    std::u32string all;
    std::size_t starter = text.npos;
    for (char32_t c : text) {
        const int own = combining_class(c);
        const bool adjacent = starter + 1 == all.size();  // not used if starter is npos
        const bool blocked = starter == text.npos || (!adjacent && combining_class(all.back()) >= own);
        if (const char32_t both = blocked ? 0 : composite(all[starter], c); both != 0) {
            all[starter] = both;
            continue;
        }
        if (own == 0) starter = all.size();
        all += c;
    }
    return all;
}

}  // namespace

const Map& canonical_decompositions() { return tables().decompositions; }

int combining_class(char32_t c) { return tables().classes[c]; }

void sort_by_class(char32_t* begin, char32_t* end) {
    std::stable_sort(begin, end, [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
}

std::string nfc(std::string_view text, const MayCompose& may) {
    std::string all;
    // The text is divided into stretches, whose NFC does not depend on the text around them. begin: start of the
    // current stretch, which is not yet in `all`. stable: whether NFC certainly leaves this stretch unchanged.
    std::size_t begin = 0;
    bool stable = true;
    const auto close = [&](std::size_t end) {
        const std::string_view before = text.substr(begin, end - begin);
        begin = end;
        if (stable) {
            all += before;
            return;
        }
        stable = true;
        const std::string after = to_utf8(composed(decomposed(code_points(before))));
        all += after == before || !may || may(before, after) ? after : std::string(before);
    };
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint c = decode_utf8(text, at);
        if (c.length > 0 && tables().unstable[c.value]) {
            stable = false;  // the character continues the stretch
        } else {
            close(at);  // a stable character begins a new stretch
        }
        at += c.step();
        if (c.length == 0) close(at);  // a byte that is not UTF-8 is a separate stretch
    }
    close(text.size());
    return all;
}

}  // namespace masquerade
