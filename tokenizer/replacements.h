// SPDX-License-Identifier: MIT
// Replacements for characters that a vocabulary lacks, for NormaliseOptions::replace. For example, bert-base-chinese
// has no curly quotes, dashes or ellipsis; without replacements they all become [UNK].
#pragma once
#include <map>
#include <string>

namespace masquerade {

using Replacements = std::map<char32_t, std::string>;

// Replaces typographic quotes, dashes and the ellipsis by their ASCII forms.
Replacements ascii_punctuation();

// Reads a file with one replacement per line: a character, a tab, and its text (may be empty). TokenizerError names a
// malformed line.
Replacements read_replacements(const std::string& path);

}  // namespace masquerade
