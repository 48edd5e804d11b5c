// SPDX-License-Identifier: MIT
// Measures of a set of generated lines, to be compared with the same measures of equally many held-out lines: perfect
// samples have the held-out lines' values, neither higher nor lower. All measures count words (word_model.h), not
// pieces, so models with different vocabularies are comparable.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/scoring/word_model.h"

namespace masquerade {

// Finds runs of words that a line shares with the training text, by a suffix array of the text.
class TrainingRuns {
  public:
    explicit TrainingRuns(const std::vector<std::vector<int>>& lines);

    // Length of the longest run of words of `line` that occurs within one line of the training text.
    std::size_t longest(const std::vector<int>& line) const;

  private:
    std::size_t longest_at(const std::vector<int>& line, std::size_t first) const;

    std::vector<int> text_;              // the words of every line, followed by line_end
    std::vector<std::uint32_t> places_;  // positions in text_, sorted by the words from there to the end of the line
};

struct TextQuality {
    Perplexity perplexity;        // under a 5-gram model of the training text
    double distinct1 = 0;         // distinct words / words
    double distinct2 = 0;         // distinct bigrams / bigrams                              Li et al. 2016
    double repeated = 0;          // share of lines that repeat an earlier line of the set
    double copied = 0;            // share of lines that are lines of the training text
    double match = 0;             // longest run shared with the training text, as a share of the line; mean
    double length = 0;            // mean number of words per line
    std::vector<double> lengths;  // shares of the lines with 0, 1, 2-3, 4-7, ... words
};

class SampleQuality {
  public:
    explicit SampleQuality(const std::vector<std::string>& training);
    SampleQuality(const SampleQuality&) = delete;
    SampleQuality& operator=(const SampleQuality&) = delete;

    // distinct1, distinct2 and repeated depend on the number of lines, so they are measured on the first `compared`
    // lines, the same number for every set. The other measures use all lines.
    TextQuality measure(const std::vector<std::string>& lines, std::size_t compared);
    double words(const std::vector<std::string>& lines);  // mean number of words per line
    // Perplexity of `others` under a 5-gram model of `lines`. It is high if `lines` miss a part of the text.
    // Zhao et al. 2018
    double reverse_perplexity(const std::vector<std::string>& lines, const std::vector<std::string>& others);

  private:
    WordTable table_;
    std::vector<std::vector<int>> training_;  // sorted after model_ and runs_ are built
    WordModel model_;
    TrainingRuns runs_;
};

}  // namespace masquerade
