// SPDX-License-Identifier: MIT
// Unicode's canonical decomposition and composition (NFC), as in Unicode Standard Annex 15.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "tokenizer/table_rows.h"

namespace masquerade {

// A Hangul syllable (The Unicode Standard, section 3.12) consists of one of 19 initial consonants, one of 21 vowels,
// and one of 27 final consonants or none; `finals` also counts "none". syllable, initial and vowel are the first code
// points of their kind; before_final is the code point before the first final consonant.
namespace hangul {
constexpr char32_t syllable = 0xAC00, initial = 0x1100, vowel = 0x1161, before_final = 0x11A7;
constexpr char32_t initials = 19, vowels = 21, finals = 28, syllables = initials * vowels * finals;

// Calls put() for each part of the syllable c: its initial consonant, its vowel and, if it has one, its final
// consonant.
template <class Put>
void decompose(char32_t c, Put put) {
    const char32_t s = c - syllable;
    put(initial + s / finals / vowels);
    put(vowel + s / finals % vowels);
    if (s % finals > 0) put(before_final + s % finals);
}
}  // namespace hangul

// Returns the full canonical decomposition of each code point that has one, except Hangul syllables.
const unicode::Map& canonical_decompositions();

// Returns the canonical combining class of a code point; 0 if the code point is a starter.
int combining_class(char32_t c);

// Sorts characters with a nonzero combining class into Unicode's canonical order, which is the order of the classes.
// Characters of the same class keep their order.
void sort_by_class(char32_t* begin, char32_t* end);

// Decides whether a stretch of text that is not in NFC (`before`) is replaced by its NFC (`after`).
using MayCompose = std::function<bool(std::string_view before, std::string_view after)>;

// Returns the text in NFC. Works on stretches of the text that are as short as possible: a stretch ends before the next
// character that NFC neither changes nor joins to the text before it. A stretch for which `may` returns false stays
// unchanged, and so do bytes that are not UTF-8.
std::string nfc(std::string_view text, const MayCompose& may = nullptr);

}  // namespace masquerade
