// SPDX-License-Identifier: MIT
// How a broken property is reported, and the property that everything that reads files must have.
#pragma once
#include <exception>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "tokenizer/vocabulary.h"

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

struct Counts {
    std::size_t read = 0, refused = 0;
    std::string told() const { return text(read, " read, ", refused, " refused"); }
};

// Returns the property that read() breaks, or "". read() must succeed, or throw one of this project's errors with a
// short message in its own words.
template <class Read>
std::string problem_of(Counts& counts, Read read) {
    try {
        read();
        counts.read++;
        return "";
    } catch (const Broken& e) {
        return e.property;
    } catch (const std::exception& e) {
        counts.refused++;
        const std::string what = e.what();
        for (const char* raw : {"json.exception", "_M_", "std::", "basic_string", "stoi", "stoull", "vector::"})
            if (what.find(raw) != what.npos) return "a message is in our words: " + what;
        if (what.empty() || what.size() > 3000) return "a message is short: " + std::to_string(what.size()) + " bytes";
        const bool ours = dynamic_cast<const Error*>(&e) || dynamic_cast<const TokenizerError*>(&e);
        return ours ? "" : "only our own errors are thrown: " + what;
    }
}

}  // namespace masquerade::fuzz
