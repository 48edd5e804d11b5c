// SPDX-License-Identifier: MIT
// Characters that a vocabulary lacks, and what to read instead: NormaliseOptions::replace. bert-base-chinese, for one,
// has no curly quotes, no dashes and no ellipsis, and all of them become [UNK].
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace masquerade {

using Replacements = std::vector<std::pair<char32_t, std::u32string>>;

// Typographic quotes, dashes and the ellipsis as a typewriter has them.
Replacements ascii_punctuation();

// From a file: a character, a tab, and its text (which may be empty) a line. TokenizerError names a line that is not
// so.
Replacements read_replacements(const std::string& path);

}  // namespace masquerade
