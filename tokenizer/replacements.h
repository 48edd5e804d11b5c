// SPDX-License-Identifier: MIT
// Characters that a vocabulary lacks, and what to read instead: NormaliseOptions::replace. bert-base-chinese, for one,
// has no curly quotes, no dashes and no ellipsis, and all of them become [UNK].
#pragma once
#include <map>
#include <string>

namespace masquerade {

using Replacements = std::map<char32_t, std::string>;

// Typographic quotes, dashes and the ellipsis as a typewriter has them.
Replacements ascii_punctuation();

// From a file: a character, a tab, and its text (which may be empty) a line. TokenizerError names a wrong line.
Replacements read_replacements(const std::string& path);

}  // namespace masquerade
