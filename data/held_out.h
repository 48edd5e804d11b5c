// SPDX-License-Identifier: MIT
// Divides the lines of a text into training and held-out lines, in one pass and in bounded memory.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace masquerade {

// Holds out about one line in fifty, and at most 10,000 lines. A hash of the line decides, so equal lines never part,
// and the order of the text does not matter. If there are too many candidates, those with the largest hash become
// training lines.
class HeldOutLines {
  public:
    static constexpr std::size_t most = 10000;
    struct Line {
        std::string source, target;
        std::uint64_t number = 0;
    };

    // `train` is called with each training line: as soon as the line is added, or when it is no candidate any more.
    explicit HeldOutLines(std::function<void(Line)> train) : train_(std::move(train)) {}
    void add(std::string source, std::string target);
    // Returns the held-out lines, in the order of the text. If there is no training line, all lines become training
    // lines.
    std::vector<Line> finish();
    // Returns a warning if few lines are left, or an empty string. Equal lines stay together, so a single line that
    // occurs thousands of times can push all others out, and then become a training line itself.
    std::string warning() const;

  private:
    void let_go(std::vector<Line> lines);

    std::function<void(Line)> train_;
    std::map<std::uint32_t, std::vector<Line>> candidates_;  // by hash
    std::uint64_t lines_ = 0, let_go_ = 0;
    std::size_t count_ = 0;                         // number of candidates
    std::uint64_t limit_ = std::uint64_t(1) << 32;  // candidates have smaller hashes
};

}  // namespace masquerade
