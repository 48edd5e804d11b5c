// SPDX-License-Identifier: MIT
// How a property that does not hold is said.
#pragma once
#include <string>
#include <vector>

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

}  // namespace masquerade::fuzz
