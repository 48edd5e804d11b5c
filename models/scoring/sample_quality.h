// SPDX-License-Identifier: MIT
// Measures of a set of generated lines, to be compared with the measures of equally many held-out lines. For the
// samples of a perfect model, each measure has about the same value as for the held-out lines: neither a higher nor a
// lower value is better. All measures count words (word_model.h), not tokens of the model, so models with different
// vocabularies are comparable.
#pragma once
#include "models/scoring/word_model.h"

namespace masquerade {

// Finds the sequences of adjacent words ("runs") that a line shares with the training text, with a suffix array of the
// training text.
class TrainingRuns {
  public:
    explicit TrainingRuns(const Texts& lines);

    // Returns the length of the longest run of words of `line` that also occurs within one line of the training text.
    std::size_t longest(const Tokens& line) const;

  private:
    std::size_t longest_at(const Tokens& line, std::size_t first) const;

    Tokens text_;  // the words of every training line, each line followed by line_end
    // Suffix array: all positions in text_, sorted by the words from the position to the end of its line.
    std::vector<std::uint32_t> places_;
};

struct TextQuality {
    Perplexity perplexity;  // perplexity of the lines under a WordModel of the training text
    double distinct1 = 0;   // number of different words / number of words
    double distinct2 = 0;   // number of different bigrams / number of bigrams         Li et al. 2016
    double repeated = 0;    // share of the lines that equal an earlier line of the set
    double copied = 0;      // share of the lines that equal a line of the training text
    double match = 0;       // mean of (TrainingRuns::longest / number of words) over the lines with words
    double length = 0;      // mean number of words per line
    Numbers lengths;        // shares of the lines with 0, 1, 2-3, 4-7, ... words
};

class SampleQuality {
  public:
    explicit SampleQuality(const Strings& training);
    SampleQuality(const SampleQuality&) = delete;
    SampleQuality& operator=(const SampleQuality&) = delete;

    // distinct1, distinct2 and repeated depend on the number of lines. They are therefore measured on the first
    // `compared` lines only; pass the same `compared` for all sets of lines. The other measures use all lines.
    TextQuality measure(const Strings& lines, std::size_t compared);
    double words(const Strings& lines);  // mean number of words per line
    // Returns the perplexity of `others` under a WordModel of `lines` (Zhao et al. 2018). It is high if `lines` lack
    // words or phrases that are frequent in `others`.
    double reverse_perplexity(const Strings& lines, const Strings& others);

  private:
    WordTable table_;
    Texts training_;  // the training lines, sorted for binary search
    WordModel model_;
    TrainingRuns runs_;
};

}  // namespace masquerade
