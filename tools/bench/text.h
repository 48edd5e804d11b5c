// SPDX-License-Identifier: MIT
// Text to measure with: lines in memory.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace masquerade {

struct BenchText {
    std::string name;                     // for people
    std::string bytes;                    // valid UTF-8; every line ends in a line feed
    std::vector<std::string_view> lines;  // in `bytes`, without it
    int copies = 1;                       // times the text was repeated

    BenchText() = default;
    BenchText(const BenchText&) = delete;  // `lines` would point into the other's bytes
    BenchText(BenchText&&) = default;

    double megabytes() const { return double(bytes.size()) / 1e6; }
    std::string_view once() const {
        return std::string_view(bytes).substr(0, bytes.size() / std::size_t(copies));
    }
};

// Files, one after the other. Without one: what training takes by default, corpus/ or the built-in grammar,
// as often as makes about `size` bytes.
BenchText read_bench_text(const std::vector<std::string>& files, double size = 16e6);

}  // namespace masquerade
