// SPDX-License-Identifier: MIT
// The distribution of the target length, given the source length: counts in the training text with add-one smoothing. A
// source length includes [CLS] and [SEP], and is 1 for a text; a target length excludes [SEP].
#pragma once
#include <map>

#include "data/sentences.h"

namespace masquerade {

// The possible target lengths: least .. most, both included.
struct LengthRange {
    int least, most;
};
// Returns log p of each number of tokens, from 0 to range.most, with p proportional to exp(scores[n]). Numbers that are
// not possible have the probability 0.
Numbers length_law(const Numbers& scores, LengthRange range);
// Returns the `count` most likely numbers, or all that are possible if there are fewer. The most likely one comes
// first; of equally likely ones, the smaller one.
std::vector<int> best_lengths(const Numbers& law, int count);
// Draws a number with the random number u in (0,1).
int draw_length(const Numbers& law, double u);

class LengthTable {
  public:
    void add(int source, int target) { counts_[{source, target}]++; }
    bool empty() const { return counts_.empty(); }
    Numbers law(int source, LengthRange range) const;

    // A line for each pair of numbers that occurs: tokens of the source, tokens of the target, and how often. read()
    // throws BadInput if a line is anything else; `name` is the name of the file.
    std::string lines() const;
    static LengthTable read(const std::string& lines, const std::string& name);

  private:
    double count(int source, int target) const;
    std::map<std::pair<int, int>, std::int64_t> counts_;  // of pairs of a source length and a target length
};

}  // namespace masquerade
