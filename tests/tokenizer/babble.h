// SPDX-License-Identifier: MIT
// Makes text for training vocabularies. It is the same in every run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace masquerade::made_up {

using Lines = std::vector<std::string>;

inline std::vector<std::string> tokens_of(const Vocabulary& v, int from = 5) {
    std::vector<std::string> tokens;
    for (int i = from; i < v.size(); i++) tokens.push_back(v.token(i));
    return tokens;
}

struct Random {
    std::uint64_t state;
    std::uint64_t below(std::uint64_t n) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (state >> 33) % n;
    }
};

// Returns text in an invented language. Words have up to four syllables; the first syllables of the list are much more
// frequent.
inline Lines babble(int lines, std::uint64_t seed, std::size_t different) {
    const char* syllables[] = {"a",  "b",  "ba", "na", "ti", "lo", "sek", "mur",
                               "19", "20", "99", "中", "文", "é",  "o",   ", "};
    Lines text;
    Random random{seed};
    for (int n = 0; n < lines; n++) {
        std::string line;
        for (int word = 0; word < 8; word++) {
            for (std::uint64_t i = 1 + random.below(4); i > 0; i--)
                line += syllables[random.below(1 + random.below(different))];
            line += ' ';
        }
        text.push_back(line);
    }
    return text;
}

}  // namespace masquerade::made_up
