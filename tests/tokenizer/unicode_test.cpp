// SPDX-License-Identifier: MIT
// Compares the table of characters with a second source of Unicode's data, the library utf8proc, for every code point.
// Also compares the whole table with the hash that its generator wrote.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "doctest/doctest.h"
#include "engine/base/random.h"
#include "tokenizer/canonical.h"
#include "tokenizer/characters.h"
#include "tokenizer/table_rows.h"
#include "input/utf8.h"
#if __has_include(<utf8proc.h>) && !defined(WITHOUT_UTF8PROC)
#include <utf8proc.h>
#endif

using namespace masquerade;

namespace {

TEST_CASE("unicode: the table is what its generator wrote") {
    std::string all;
    for (std::string_view table : {unicode::word_characters, unicode::flags, unicode::lower, unicode::decomposition,
                                   unicode::never_composed, unicode::combining_classes, unicode::hugging_face_flags,
                                   unicode::hugging_face_lower, unicode::hugging_face_strip})
        all += table;
    CHECK(hash_of(all) == unicode::table_hash);
}

#if __has_include(<utf8proc.h>) && !defined(WITHOUT_UTF8PROC)

struct Range {
    char32_t first, last;
};

template <std::size_t n>
bool inside(char32_t c, const Range (&ranges)[n]) {
    for (const Range& r : ranges)
        if (c >= r.first && c <= r.last) return true;
    return false;
}

// The 4489 characters that Unicode 15.0 added. (Unicode 15.1 added 627 more, which do not concern the table.)
constexpr Range added[] = {{0xCF3, 0xCF3},     {0xECE, 0xECE},     {0x10EFD, 0x10EFF}, {0x1123F, 0x11241},
                           {0x11B00, 0x11B09}, {0x11F00, 0x11F10}, {0x11F12, 0x11F3A}, {0x11F3E, 0x11F59},
                           {0x1342F, 0x1342F}, {0x13439, 0x13455}, {0x1B132, 0x1B132}, {0x1B155, 0x1B155},
                           {0x1D2C0, 0x1D2D3}, {0x1DF25, 0x1DF2A}, {0x1E030, 0x1E06D}, {0x1E08F, 0x1E08F},
                           {0x1E4D0, 0x1E4F9}, {0x1F6DC, 0x1F6DC}, {0x1F774, 0x1F776}, {0x1F77B, 0x1F77F},
                           {0x1F7D9, 0x1F7D9}, {0x1FA75, 0x1FA77}, {0x1FA87, 0x1FA88}, {0x1FAAD, 0x1FAAF},
                           {0x1FABB, 0x1FABD}, {0x1FABF, 0x1FABF}, {0x1FACE, 0x1FACF}, {0x1FADA, 0x1FADB},
                           {0x1FAE8, 0x1FAE8}, {0x1FAF7, 0x1FAF8}, {0x2B739, 0x2B739}, {0x31350, 0x323AF}};
constexpr Range syllables[] = {{0xAC00, 0xD7A3}};  // Hangul, which is decomposed by arithmetic, not by the table
constexpr Range surrogates[] = {{0xD800, 0xDFFF}};

// BERT's ideographs (google-research/bert, tokenization.py).
constexpr Range ideographs[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                                {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
constexpr Range ascii_punctuation[] = {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}};

// Characters with case that are not in the categories Lu, Ll and Lt: feminine and masculine ordinal, Roman numerals,
// and letters in circles and squares (Unicode's Other_Uppercase and Other_Lowercase, without the ignorable ones).
constexpr Range other_cased[] = {{0xAA, 0xAA},       {0xBA, 0xBA},       {0x2160, 0x217F},  {0x24B6, 0x24E9},
                                 {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
// Ignorable punctuation: Unicode's Word_Break property is MidLetter, MidNumLet or Single_Quote.
constexpr Range inside_words[] = {{0x27, 0x27},     {0x2E, 0x2E},     {0x3A, 0x3A},     {0xB7, 0xB7},
                                  {0x387, 0x387},   {0x55F, 0x55F},   {0x5F4, 0x5F4},   {0x2018, 0x2019},
                                  {0x2024, 0x2024}, {0x2027, 0x2027}, {0xFE13, 0xFE13}, {0xFE52, 0xFE52},
                                  {0xFE55, 0xFE55}, {0xFF07, 0xFF07}, {0xFF0E, 0xFF0E}, {0xFF1A, 0xFF1A}};

constexpr char32_t end_of_code_points = 0x110000;

// The tables, expanded to all code points.
struct Spread {
    std::vector<std::uint32_t> flags = std::vector<std::uint32_t>(end_of_code_points);
    std::vector<std::u32string> lower = every_code_point(), whole = lower;

    Spread() {
        unicode::each_range(unicode::flags, [&](char32_t first, char32_t last, std::uint32_t value) {
            std::fill(flags.begin() + first, flags.begin() + last + 1, value);
        });
        unicode::Map map;
        unicode::add(unicode::lower, map);
        for (const auto& [c, to] : map) lower[c] = to;
        for (const auto& [c, to] : canonical_decompositions()) whole[c] = to;
    }

    static std::vector<std::u32string> every_code_point() {
        std::vector<std::u32string> all(end_of_code_points);
        for (char32_t c = 0; c < end_of_code_points; c++) all[c] = c;
        return all;
    }
};

const Spread& table() {
    static const Spread spread;
    return spread;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(utf8proc_int32_t(c)); }
const utf8proc_property_t& property(char32_t c) { return *utf8proc_get_property(utf8proc_int32_t(c)); }

std::u32string decomposed(char32_t c) {
    utf8proc_int32_t points[16];
    int boundary = 0;
    auto n = utf8proc_decompose_char(utf8proc_int32_t(c), points, 16, UTF8PROC_DECOMPOSE, &boundary);
    REQUIRE((n >= 1 && n <= 16));
    return std::u32string(points, points + n);
}

std::uint32_t expected_flags(char32_t c) {
    auto kind = category(c);
    auto direction = property(c).bidi_class;
    auto any = [&](std::initializer_list<utf8proc_category_t> kinds) {
        for (auto k : kinds)
            if (k == kind) return true;
        return false;
    };
    // Python's white space: category Zs, and the characters that are spaces or separators for Unicode's bidirectional
    // algorithm.
    bool space = kind == UTF8PROC_CATEGORY_ZS || direction == UTF8PROC_BIDI_CLASS_WS ||
                 direction == UTF8PROC_BIDI_CLASS_B || direction == UTF8PROC_BIDI_CLASS_S;
    bool format = any({UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CF});
    bool ignorable = any({UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME, UTF8PROC_CATEGORY_CF, UTF8PROC_CATEGORY_LM,
                          UTF8PROC_CATEGORY_SK}) ||
                     inside(c, inside_words);
    bool cased = any({UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LL, UTF8PROC_CATEGORY_LT}) || inside(c, other_cased);
    bool nonstarter = true;
    for (char32_t d : decomposed(c)) nonstarter &= property(d).combining_class != 0;
    bool punctuation = any({UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PD, UTF8PROC_CATEGORY_PS, UTF8PROC_CATEGORY_PE,
                            UTF8PROC_CATEGORY_PI, UTF8PROC_CATEGORY_PF, UTF8PROC_CATEGORY_PO}) ||
                       inside(c, ascii_punctuation);
    bool kept = c == '\t' || c == '\n' || c == '\r';
    bool control = (format && !kept) || c == 0 || c == 0xFFFD;
    return (control ? Character::drop : 0u) | (space ? Character::space : 0u) |
           (inside(c, ideographs) ? Character::ideograph : 0u) | (punctuation ? Character::punctuation : 0u) |
           (kind == UTF8PROC_CATEGORY_MN ? Character::mark : 0u) | (cased ? Character::cased : 0u) |
           (ignorable ? Character::ignorable : 0u) | (nonstarter ? Character::nonstarter : 0u);
}

// Returns the first code points of Unicode 14 for which holds(c) is false, after trying all code points.
template <class Holds>
std::string exceptions(Holds holds) {
    std::string list;
    int count = 0;
    for (char32_t c = 0; c < end_of_code_points; c++) {
        if (inside(c, surrogates) || inside(c, added) || holds(c) || ++count > 5) continue;
        char name[16];
        std::snprintf(name, sizeof name, "U+%04X ", unsigned(c));
        list += name;
    }
    return count > 5 ? list + "and " + std::to_string(count - 5) + " more" : list;
}

// Returns null if utf8proc can be compared with the table, otherwise the reason why not. In the listed versions, all
// characters of Unicode 14 have the same properties as in 14.0.
const char* reason_to_skip() {
    static const std::string version = utf8proc_unicode_version(), table_version = unicode::version;
    static const std::string reason = "utf8proc here has Unicode " + version + ", the table " + table_version;
    bool known = version == "14.0.0" || version == "15.0.0" || version == "15.1.0";
    return known && table_version == "14.0.0" ? nullptr : reason.c_str();
}

#define AGAINST_UTF8PROC doctest::skip(reason_to_skip() != nullptr) * doctest::description(reason_to_skip())

TEST_CASE("unicode: flags of every code point are utf8proc's" * AGAINST_UTF8PROC) {
    CHECK(exceptions([](char32_t c) { return table().flags[c] == expected_flags(c); }) == "");
}

TEST_CASE("unicode: lower case of every code point is utf8proc's" * AGAINST_UTF8PROC) {
    // The mapping of utf8proc is from one character to one character. Only the capital I with a dot above becomes two
    // characters.
    CHECK(exceptions([](char32_t c) {
              return table().lower[c] == std::u32string{char32_t(utf8proc_tolower(utf8proc_int32_t(c)))};
          }) == "U+0130 ");
    CHECK(table().lower[0x130] == U"i\u0307");
}

TEST_CASE("unicode: every code point decomposed is utf8proc's" * AGAINST_UTF8PROC) {
    CHECK(exceptions([](char32_t c) {
              return table().whole[c] == (inside(c, syllables) ? std::u32string{c} : decomposed(c));
          }) == "");
}

TEST_CASE("unicode: every combining class is utf8proc's" * AGAINST_UTF8PROC) {
    CHECK(exceptions([](char32_t c) { return combining_class(c) == property(c).combining_class; }) == "");
}

std::string in_utf8(const std::u32string& points) {
    std::string text;
    for (char32_t c : points) append_utf8(text, c);
    return text;
}

std::string nfc_of_utf8proc(const std::string& text) {
    utf8proc_uint8_t* made = utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str()));
    std::string all = reinterpret_cast<const char*>(made);
    std::free(made);
    return all;
}

TEST_CASE("unicode: NFC of every code point, alone and in company, is utf8proc's" * AGAINST_UTF8PROC) {
    const auto same = [](const std::u32string& points) {
        const std::string text = in_utf8(points);
        return nfc(text) == nfc_of_utf8proc(text);
    };
    CHECK(exceptions([&](char32_t c) {
              if (c == 0 || c == 0x11A7) return true;  // 0 ends a C string; utf8proc takes 0x11A7 for a final consonant
              return same({c}) && same({U'a', c}) && same({c, 0x323, 0x301}) && same({0x1100, c}) && same({0xAC00, c});
          }) == "");
}

TEST_CASE("unicode: NFC of random text is utf8proc's, and NFC of NFC is itself" * AGAINST_UTF8PROC) {
    std::vector<char32_t> pool;
    for (const auto& [c, parts] : canonical_decompositions()) {
        pool.push_back(c);
        pool.insert(pool.end(), parts.begin(), parts.end());
    }
    for (char32_t c = 0x300; c < 0x20000; c++)
        if (combining_class(c) > 0) pool.push_back(c);
    for (char32_t c = 0; c < 400; c++) pool.push_back(0xAC00 + c * 27);
    for (char32_t c = 0x1100; c < 0x1200; c++)
        if (c != 0x11A7) pool.push_back(c);
    std::uint64_t state = 1;
    const auto below = [&](std::size_t n) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return std::size_t(state >> 33) % n;
    };
    int different = 0;
    for (int i = 0; i < 100000; i++) {
        std::u32string points;
        for (std::size_t n = 1 + below(7); n > 0; n--) points += pool[below(pool.size())];
        const std::string text = in_utf8(points), composed = nfc(text);
        different += composed != nfc_of_utf8proc(text) || nfc(composed) != composed;
    }
    CHECK(different == 0);
}

TEST_CASE("unicode: characters newer than the table are nothing special in it" * AGAINST_UTF8PROC) {
    int count = 0, special = 0;
    for (const Range& r : added)
        for (char32_t c = r.first; c <= r.last; c++) {
            std::u32string itself{c};
            bool plain = table().flags[c] == (inside(c, ideographs) ? Character::ideograph : 0u) &&
                         table().lower[c] == itself && table().whole[c] == itself;
            count++, special += !plain;
        }
    CHECK(count == 4489);
    CHECK(special == 0);
}

#else

TEST_CASE("unicode: every code point against utf8proc" * doctest::skip() *
          doctest::description("built without utf8proc.h (Debian: libutf8proc-dev)")) {}

#endif

}  // namespace
