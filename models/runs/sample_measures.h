// SPDX-License-Identifier: MIT
// Measures of the texts that a model generates freely, beside those of as many held-out lines
// (models/scoring/sample_quality.h).
#pragma once
#include "models/runs/measures.h"
#include "models/runs/unilm_run.h"
#include "models/scoring/sample_quality.h"

namespace masquerade {

// The language model of --judge, which measures the perplexity of generated lines.
class Judge {
  public:
    // `path` is a run folder. Throws BadUsage if it holds no language model.
    Judge(const std::string& path, Device device);
    // Returns the lines that the language model reads completely: neither truncated nor with [UNK].
    Strings whole(const Strings& lines) const;
    // Returns the perplexity per word; the end of a line counts as a word.
    double perplexity(const Strings& lines, SampleQuality& quality) const;

  private:
    std::unique_ptr<UniLmRun> run_;
};
std::unique_ptr<const Judge> judge_of(const Measuring& how);  // that of --judge; null if it is not given

// Returns the lines that the model should generate: the targets if there are pairs, else the lines themselves.
inline const Strings& reference_lines(const Strings& lines, const Strings& targets) {
    return targets.empty() ? lines : targets;
}

// Appends the measures of the samples. `judge`: null if there is none.
void measure_samples(const TrainingText& text, const Strings& samples, const WordPiece& tokenizer, const Judge* judge,
                     std::uint64_t seed, MeasureRows& rows);

}  // namespace masquerade
