// SPDX-License-Identifier: MIT
// Replacements for characters that a vocabulary lacks, for NormaliseOptions::replace. For example, bert-base-chinese
// has no curly quotes, dashes or ellipsis; without replacements, these characters become [UNK].
#pragma once
#include <map>
#include <string>

namespace masquerade {

using Replacements = std::map<char32_t, std::string>;

// Returns ASCII replacements for typographic quotes, dashes and the ellipsis.
Replacements ascii_punctuation();

// Reads a file with one replacement per line: a character, a tab, and the text that replaces the character, which may
// be empty. Empty lines are skipped. Throws TokenizerError if a line is malformed.
Replacements read_replacements(const std::string& path);

}  // namespace masquerade
