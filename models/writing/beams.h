// SPDX-License-Identifier: MIT
// Manages the beams of one source. Decides which continuations each step keeps, which hypotheses are finished, and when
// the search stops.
#pragma once
#include "models/writing/search_rules.h"

namespace masquerade {

// A token that can continue a beam, and the log p that the token adds to the beam's sum.
struct Candidate {
    int token;
    double log_p;
};

struct Beam {
    Tokens written;
    double sum = 0;  // sum of Candidate::log_p over the tokens in `written`
    // Index of the beam's row among the rows of the step (NextToken::Row). After advance(), the index of the parent's
    // row; the parent is the beam of the previous step that this beam continues.
    int row = -1;
    std::vector<Candidate> next;
};

// The unfinished beams and the finished hypotheses of a source. If options.samples > 0, each sample is a beam that is
// continued independently of the others.
class Beams {
  public:
    Beams(const SearchRules& rules, const SearchOptions& options);

    // Returns the unfinished beams: best first in beam search; samples in the order of their numbers.
    std::vector<Beam>& all() { return beams_; }
    bool done() const { return beams_.empty(); }
    // Returns at most n_best hypotheses, best first, or all samples in the order of their numbers.
    Hypotheses results() const;

    // Returns the number of candidates (tokens that can continue a beam) that each beam needs. Before advance(), the
    // caller must put this number of best candidates into Beam::next, or fewer if fewer tokens are allowed. If
    // options.samples > 0, the caller must put one sampled candidate there instead.
    int candidates() const;
    std::uint32_t sample(std::size_t beam) const { return std::uint32_t(sample_[beam]); }

    // Replaces the beams by their best continuations, chosen among the candidates of all beams.
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
    std::size_t width_;  // maximum number of beams
    int length_ = 0;     // number of tokens of each beam
    std::vector<Beam> beams_;
    Hypotheses finished_;
    std::vector<std::size_t> sample_;  // for each beam, the number of its sample; empty in beam search
};

}  // namespace masquerade
