// SPDX-License-Identifier: MIT
// Unicode's canonical decomposition and composition (NFC), as in Unicode Standard Annex 15.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "tokenizer/table_rows.h"

namespace masquerade {

// Returns the full canonical decomposition of each code point that has one, except Hangul syllables.
const unicode::Map& canonical_decompositions();

// Returns the canonical combining class of a code point; 0 if the code point is a starter.
int combining_class(char32_t c);

// Sorts characters with a nonzero combining class into Unicode's canonical order: by class; equal classes keep their
// order.
void sort_by_class(char32_t* begin, char32_t* end);

// Returns the text in NFC. Bytes that are not UTF-8 are unchanged.
std::string nfc(std::string_view text);

// Decides whether a stretch of text that is not in NFC (`before`) is replaced by its NFC (`after`).
using MayCompose = std::function<bool(std::string_view before, std::string_view after)>;

// Like nfc(), but a stretch for which `may` returns false is not changed. Each stretch is as short as possible: it ends
// before the next character that NFC neither changes nor joins to the text before it.
std::string nfc(std::string_view text, const MayCompose& may);

}  // namespace masquerade
