// SPDX-License-Identifier: MIT
// Numbers for how good a set of generated lines is, beside those of as many held-out lines: samples that are
// as good as the text have the held-out lines' numbers, neither higher nor lower. All count words
// (word_model.h), not pieces, so that models with different vocabularies compare.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/scoring/word_model.h"

namespace masquerade {

// Finds what a line shares with the training text: all places where a run of words can start, sorted.
class TrainingRuns {
  public:
    explicit TrainingRuns(const std::vector<std::vector<int>>& lines);

    // The most neighbouring words of the line that stand side by side in one line of the training text.
    std::size_t longest(const std::vector<int>& line) const;

  private:
    std::size_t longest_at(const std::vector<int>& line, std::size_t first) const;

    std::vector<int> text_;              // every line and a mark
    std::vector<std::uint32_t> places_;  // of its symbols, by what follows up to the line's end
};

struct TextQuality {
    Perplexity perplexity;        // under a 5-gram model of the training text
    double distinct1 = 0;         // different words over words
    double distinct2 = 0;         // different pairs over pairs of neighbours                Li et al. 2016
    double repeated = 0;          // share of lines that stand before in the set
    double copied = 0;            // share of lines that are lines of the training text
    double match = 0;             // mean share of a line (with words) that one run of training text covers
    double length = 0;            // words a line
    std::vector<double> lengths;  // shares of the lines with 0, 1, 2-3, 4-7, ... words
};

class SampleQuality {
  public:
    explicit SampleQuality(const std::vector<std::string>& training);
    SampleQuality(const SampleQuality&) = delete;
    SampleQuality& operator=(const SampleQuality&) = delete;

    // Distinct words, distinct pairs and repeated lines depend on how many lines are looked at: sets are
    // compared by the same number of lines, the first `compared` of each. The other numbers are those of all
    // lines.
    TextQuality measure(const std::vector<std::string>& lines, std::size_t compared);
    double words(const std::vector<std::string>& lines);  // a line, on average
    // How well a 5-gram model of `lines` expects `others`: lines that leave a part of the text out do badly.  Zhao et
    // al. 2018
    double reverse_perplexity(const std::vector<std::string>& lines, const std::vector<std::string>& others);

  private:
    WordTable table_;
    std::vector<std::vector<int>> training_;  // sorted when the others are made
    WordModel model_;
    TrainingRuns runs_;
};

}  // namespace masquerade
