// SPDX-License-Identifier: MIT
// The beams of one source from step to step: which continuations go on, which are finished, when to stop.
#pragma once
#include <vector>

#include "models/writing/search_rules.h"

namespace masquerade {

// A token that may continue a beam, and what it adds to the beam's sum.
struct Candidate {
    int token;
    double log_p;
};

struct Beam {
    std::vector<int> written;
    double sum = 0;  // of what its tokens added
    int row = -1;    // of the last step: whose logits it is continued by
    std::vector<Candidate> next;
};

// All beams of a source; or, sampling, all its samples.
class Beams {
  public:
    Beams(const SearchRules& rules, const SearchOptions& options);

    std::vector<Beam>& all() { return beams_; }  // the best first
    bool done() const { return beams_.empty(); }
    // The best first, `n_best` at most; or all samples in order.
    std::vector<Hypothesis> results() const;

    // How many candidates a beam must bring.
    int candidates() const;
    std::uint32_t sample(std::size_t beam) const { return std::uint32_t(sample_[beam]); }

    // From the candidates of all beams to the beams of the next step.
    void advance();

  private:
    struct Continuation {
        std::size_t beam;
        Candidate candidate;
        double sum;
    };
    std::vector<Continuation> continuations() const;
    Beam continued(const Continuation& c) const;
    Hypothesis hypothesis(Beam beam, bool ended) const;
    void advance_bert4keras(std::vector<Beam> best);
    void advance_samples();
    void keep_best_finished();
    bool may_improve() const;
    double length_norm(std::size_t length) const;

    const SearchRules& rules_;
    const SearchOptions& options_;
    std::size_t width_, length_ = 0;  // beams at most; tokens written by each
    std::vector<Beam> beams_;
    std::vector<Hypothesis> finished_;
    std::vector<std::size_t> sample_;  // of each beam, sampling
};

}  // namespace masquerade
