// SPDX-License-Identifier: MIT
// How well decoding restores what encoding lost, the spaces: the share of lines that come back as they were.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/wordpiece.h"

namespace masquerade {

struct Restoration {
    long lines = 0;
    long unknown = 0;  // with [UNK]: no decoding can bring those back, they are left out
    long exact = 0;

    double share() const { return lines > unknown ? double(exact) / double(lines - unknown) : 0; }
};

// A line as decoding should write it: its words as the tokenizer normalises them (lower case, without
// accents, if its options say so), one space wherever the line has white space between two of them. An
// unknown word is "[UNK]".
std::string spelled(const WordPiece& tokenizer, std::string_view line);

// Decodes what it encodes, and calls failed(wanted, got) for each line that comes back otherwise.
using Failed = std::function<void(const std::string& wanted, const std::string& got)>;
Restoration restoration(const WordPiece& tokenizer, const std::vector<std::string>& lines,
                        const Failed& failed = nullptr);

}  // namespace masquerade
