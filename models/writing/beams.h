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
    double sum = 0;      // of what its tokens added
    int end_tokens = 0;  // among them
    int row = -1;        // of the last step: whose logits it is continued by
    std::vector<Candidate> next;
};

// The beams that compete with each other: all of a source, or one of its groups. Or, sampling, all samples.
class BeamGroup {
  public:
    // count: beams, or samples
    BeamGroup(const SearchRules& rules, const SearchOptions& options, int count);

    std::vector<Beam>& beams() { return beams_; }  // the best first
    bool done() const { return beams_.empty(); }
    const std::vector<Hypothesis>& finished() const { return finished_; }

    // How many candidates a beam must bring.
    int candidates() const;

    // From the candidates of all beams to the beams of the next step. `others`: the tokens that earlier
    // groups went on with in this step; this group's are added.
    void advance(std::vector<int>& others);
    // Every sample by its one candidate; finished() is in the order of the samples.
    std::uint32_t sample(std::size_t beam) const { return std::uint32_t(sample_[beam]); }
    void advance_samples();

  private:
    struct Continuation {
        std::size_t beam;
        Candidate candidate;
        double sum;
    };
    std::vector<Continuation> continuations(const std::vector<int>& others) const;
    Beam continued(const Continuation& c) const;
    Hypothesis hypothesis(Beam beam, bool ended) const;
    void advance_bert4keras(std::vector<Beam> best);
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
