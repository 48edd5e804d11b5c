// SPDX-License-Identifier: MIT
// How a property that does not hold is said, and what is counted.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/subject.h"

namespace masquerade::fuzz {

struct Broken {
    std::string property;
};

inline void require(bool holds, const char* property) {
    if (!holds) throw Broken{property};
}

inline void require_equal(const std::vector<int>& found, const std::vector<int>& expected,
                          const std::string& property) {
    if (found == expected) return;
    auto show = [](const std::vector<int>& ids) {
        std::string all;
        for (int id : ids) all += " " + std::to_string(id);
        return all;
    };
    throw Broken{property + "; found" + show(found) + ", expected" + show(expected)};
}

// How often what is checked only sometimes was.
struct Counts {
    std::size_t inputs = 0, without_unknown = 0, framed = 0, refused = 0, threaded = 0;
};

// Lines of the text, or pairs of neighbouring lines, in a batch, against one after another. The bits choose the
// frame.
void check_batch(const WordPiece& tokenizer, std::string_view text, unsigned bits, Counts& counts);

}  // namespace masquerade::fuzz
