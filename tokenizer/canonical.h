// SPDX-License-Identifier: MIT
// Unicode's canonical equivalence (Unicode Standard Annex 15): decomposition, order of marks, composition (NFC).
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "tokenizer/table_rows.h"

namespace masquerade {

// The full canonical decompositions of all code points that have one, except Hangul syllables.
const unicode::Map& canonical_decompositions();

// The canonical combining class; 0 for a starter.
int combining_class(char32_t c);

// The text in NFC. Bytes that are not UTF-8 stay where they are.
std::string nfc(std::string_view text);

// A stretch of a text that is not in NFC, and the same stretch in NFC.
using MayCompose = std::function<bool(std::string_view before, std::string_view after)>;

// As nfc(), except that a stretch stays as it is if the function says false. Stretches are as short as composition
// allows.
std::string nfc(std::string_view text, const MayCompose& may);

}  // namespace masquerade
