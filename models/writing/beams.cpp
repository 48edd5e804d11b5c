// SPDX-License-Identifier: MIT
#include "models/writing/beams.h"

#include <algorithm>
#include <cmath>

namespace masquerade {

Beams::Beams(const SearchRules& rules, const SearchOptions& options)
    : rules_(rules), options_(options), width_(options.samples > 0 ? options.samples : options.beams), beams_(1) {
    if (options.samples == 0) return;
    beams_.resize(width_);
    finished_.resize(width_);
    for (std::size_t i = 0; i < width_; i++) sample_.push_back(i);
}

// Among the best width_ + end_count() candidates of a beam, at most end_count() are end tokens. The remaining ones, at
// least width_, continue the beam. This is enough because the next step has at most width_ beams.
int Beams::candidates() const {
    if (options_.beams == 1) return 1;  // one is enough: the sampled token or, in greedy search, the best token
    return int(width_ + rules_.end_count());
}

std::vector<Beams::Continuation> Beams::continuations() const {
    std::vector<Continuation> all;
    for (std::size_t b = 0; b < beams_.size(); b++)
        for (const Candidate& c : beams_[b].next) all.push_back({b, c, beams_[b].sum + c.log_p});
    std::sort(all.begin(), all.end(), [](const Continuation& x, const Continuation& y) {
        if (x.sum != y.sum) return x.sum > y.sum;
        return x.beam != y.beam ? x.beam < y.beam : x.candidate.token < y.candidate.token;
    });
    return all;
}

Beam Beams::continued(const Continuation& c) const {
    const Beam& from = beams_[c.beam];
    Beam beam;
    beam.written.reserve(from.written.size() + 1);
    beam.written = from.written;
    beam.written.push_back(c.candidate.token);
    beam.sum = c.sum;
    beam.row = from.row;
    return beam;
}

double Beams::length_norm(std::size_t length) const {
    if (options_.bert4keras) return 1;
    return std::pow(double(std::max<std::size_t>(1, length)), options_.length_penalty);
}

// The end token counts towards the length in the score, but is not in Hypothesis::tokens.
Hypothesis Beams::hypothesis(Beam beam, bool ended) const {
    const double score = beam.sum / length_norm(beam.written.size());
    if (ended) beam.written.pop_back();
    return {std::move(beam.written), score, ended};
}

void Beams::keep_best_finished() {
    std::stable_sort(finished_.begin(), finished_.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    if (finished_.size() > width_) finished_.resize(width_);
}

// Returns whether the search must continue. It must continue if fewer than width_ hypotheses are finished. In beam
// search, it must also continue if the best beam, scored at its present length, is better than the worst finished
// hypothesis. This is the rule of early_stopping = False in Hugging Face's generate.
bool Beams::may_improve() const {
    if (finished_.size() < width_) return true;
    return options_.beams > 1 && beams_[0].sum / length_norm(length_) > finished_.back().score;
}

Hypotheses Beams::results() const {
    const std::size_t count = options_.samples > 0 ? width_ : options_.n_best;
    return {finished_.begin(), finished_.begin() + std::min(count, finished_.size())};
}

void Beams::advance() {
    if (options_.samples > 0) return advance_samples();
    const std::vector<Continuation> all = continuations();
    length_++;
    const bool last = length_ == rules_.maximum();
    std::vector<Beam> best;  // the beams of the next step
    // If no token is allowed after any beam, the beams are finished without an end token. (If some beams can continue,
    // the beams that cannot are dropped.)
    if (all.empty()) {
        for (Beam& beam : beams_) finished_.push_back(hypothesis(std::move(beam), false));
    } else if (options_.bert4keras) {
        for (std::size_t i = 0; i < std::min(width_, all.size()); i++) best.push_back(continued(all[i]));
        return advance_bert4keras(std::move(best));
    }
    for (std::size_t rank = 0; rank < all.size() && (rank < width_ || best.size() < width_); rank++) {
        const bool ended = rules_.ends(all[rank].candidate.token, length_);
        if (!ended && !last) {
            if (best.size() < width_) best.push_back(continued(all[rank]));
        } else if (rank < width_) {  // as in Hugging Face's generate, only the best width_ continuations may finish
            finished_.push_back(hypothesis(continued(all[rank]), ended));
        }
    }
    beams_ = std::move(best);
    keep_best_finished();
    if (!beams_.empty() && !may_improve()) beams_.clear();
}

// The search ends when the best beam ends or the maximum length is reached; the best beam is the only result. Other
// beams that end are dropped, and width_ becomes the number of the remaining beams.
void Beams::advance_bert4keras(std::vector<Beam> best) {
    auto ended = [&](const Beam& b) { return rules_.ends(b.written.back(), length_); };
    const bool over = ended(best[0]);
    if (!over) best.erase(std::remove_if(best.begin(), best.end(), ended), best.end());
    width_ = best.size();
    beams_ = std::move(best);
    if (!over && length_ < rules_.maximum()) return;
    finished_.push_back(hypothesis(beams_[0], over));
    beams_.clear();
}

void Beams::advance_samples() {
    length_++;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < beams_.size(); i++) {
        Hypothesis& to = finished_[sample_[i]];
        if (beams_[i].next.empty()) {
            to = hypothesis(std::move(beams_[i]), false);
            continue;
        }
        const Candidate c = beams_[i].next[0];
        Beam beam = continued({i, c, beams_[i].sum + c.log_p});
        const bool ended = rules_.ends(c.token, length_);
        if (ended || length_ == rules_.maximum()) {
            to = hypothesis(std::move(beam), ended);
            continue;
        }
        beams_[kept] = std::move(beam);
        sample_[kept++] = sample_[i];
    }
    beams_.resize(kept);
}

}  // namespace masquerade
