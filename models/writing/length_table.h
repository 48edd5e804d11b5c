// SPDX-License-Identifier: MIT
// The probabilities of the number of tokens of a target, given the number of tokens of its source: the counts in the
// training text, each plus 1, divided by their sum.
#pragma once
#include <map>

#include "data/sentences.h"

namespace masquerade {

class LengthTable {
  public:
    // The numbers of a target that are possible: from least to most. The probabilities of all other numbers are 0.
    struct Range {
        int least, most;
    };

    void add(int source, int target) { counts_[source][target]++; }
    bool empty() const { return counts_.empty(); }
    double log_p(int source, int target, Range range) const;
    // Returns the `count` most likely numbers, or all of them if there are fewer. The most likely one comes first; of
    // equally likely ones, the smaller one.
    std::vector<int> best(int source, int count, Range range) const;
    // Draws a number with the random number u in (0,1).
    int draw(int source, double u, Range range) const;

    // A line for each pair of numbers that occurs: tokens of the source, tokens of the target, and how often. read()
    // throws BadInput if a line is anything else; `name` is the name of the file.
    std::string lines() const;
    static LengthTable read(const std::string& lines, const std::string& name);

  private:
    double count(int source, int target) const;
    std::map<int, std::map<int, std::int64_t>> counts_;
};

}  // namespace masquerade
