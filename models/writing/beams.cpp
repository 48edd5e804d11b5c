// SPDX-License-Identifier: MIT
#include "models/writing/beams.h"

#include <algorithm>
#include <cmath>

namespace masquerade {

BeamGroup::BeamGroup(const SearchRules& rules, const SearchOptions& options, int count)
    : rules_(rules), options_(options), width_(std::size_t(count)), beams_(1) {
    if (options.samples == 0) return;
    beams_.resize(width_);
    finished_.resize(width_);
    for (std::size_t i = 0; i < width_; i++) sample_.push_back(i);
}

// Counts the continuations that a row may need. If some of the best `width` of the group end, the next best that do not
// end replace them; a row has no more tokens that end than there are end tokens. Tokens that earlier groups chose may
// fall behind all of these.
int BeamGroup::candidates() const {
    if (options_.beams == 1) return 1;  // a sample, or the best by penalised logits, which no sum holds
    const int chosen = options_.diversity_penalty > 0 ? options_.beams - int(width_) : 0;
    return int(width_ + rules_.end_count()) + chosen;
}

std::vector<BeamGroup::Continuation> BeamGroup::continuations(const std::vector<int>& others) const {
    std::vector<Continuation> all;
    for (std::size_t b = 0; b < beams_.size(); b++)
        for (const Candidate& c : beams_[b].next) {
            // Hamming diversity: Vijayakumar et al. 2018
            const double chosen = double(std::count(others.begin(), others.end(), c.token));
            all.push_back({b, c, beams_[b].sum + c.log_p - options_.diversity_penalty * chosen});
        }
    std::sort(all.begin(), all.end(), [](const Continuation& x, const Continuation& y) {
        if (x.sum != y.sum) return x.sum > y.sum;
        return x.beam != y.beam ? x.beam < y.beam : x.candidate.token < y.candidate.token;
    });
    return all;
}

Beam BeamGroup::continued(const Continuation& c) const {
    const Beam& from = beams_[c.beam];
    Beam beam;
    beam.written.reserve(from.written.size() + 1);
    beam.written = from.written;
    beam.written.push_back(c.candidate.token);
    beam.sum = c.sum;
    beam.end_tokens = from.end_tokens + rules_.is_end(c.candidate.token);
    beam.row = from.row;
    return beam;
}

double BeamGroup::length_norm(std::size_t length) const {
    if (options_.bert4keras) return 1;
    const double n = double(std::max<std::size_t>(1, length));
    const bool gnmt = options_.length_form == SearchOptions::Length::gnmt;
    return std::pow(gnmt ? (5 + n) / 6 : n, options_.length_penalty);
}

// The end counts in the length, and is not among the tokens.
Hypothesis BeamGroup::hypothesis(Beam beam, bool ended) const {
    Hypothesis h;
    h.score = beam.sum / length_norm(beam.written.size());
    h.ended = ended;
    h.tokens = std::move(beam.written);
    if (ended) h.tokens.pop_back();
    return h;
}

void BeamGroup::keep_best_finished() {
    std::stable_sort(finished_.begin(), finished_.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    if (finished_.size() > width_) finished_.resize(width_);
}

// Whether the best beam could still beat the worst that is finished, as Hugging Face's generate judges it:
// with `heuristic` as if it ended here, with `never` at the length that would suit it best, since a sum
// only falls.
bool BeamGroup::may_improve() const {
    if (finished_.size() < width_) return true;
    if (options_.stop == SearchOptions::Stop::when_full || options_.beams == 1) return false;
    const bool longest = options_.stop == SearchOptions::Stop::never && options_.length_penalty > 0;
    const double bound = beams_[0].sum / length_norm(longest ? std::size_t(rules_.maximum()) : length_);
    return bound > finished_.back().score;
}

void BeamGroup::advance(std::vector<int>& others) {
    const std::vector<Continuation> all = continuations(others);
    length_++;
    const bool last = length_ == std::size_t(rules_.maximum());
    std::vector<Beam> best;  // for the next step
    if (all.empty()) {       // nothing is allowed: the beams stay as they are
        for (Beam& beam : beams_) finished_.push_back(hypothesis(std::move(beam), false));
    } else if (options_.bert4keras) {
        for (std::size_t i = 0; i < std::min(width_, all.size()); i++) best.push_back(continued(all[i]));
        return advance_bert4keras(std::move(best));
    }
    for (std::size_t rank = 0; rank < all.size() && (rank < width_ || best.size() < width_); rank++) {
        const int token = all[rank].candidate.token;
        const int end_tokens = beams_[all[rank].beam].end_tokens + 1;
        const bool ended = rules_.is_end(token) && rules_.ends(end_tokens, length_);
        if (!ended && !last) {
            if (best.size() < width_) best.push_back(continued(all[rank]));
        } else if (rank < width_) {  // further down an end is passed over, as in Hugging Face's generate
            finished_.push_back(hypothesis(continued(all[rank]), ended));
        }
    }
    beams_ = std::move(best);
    keep_best_finished();
    for (const Beam& beam : beams_) others.push_back(beam.written.back());
    if (!beams_.empty() && !may_improve()) beams_.clear();
}

// It is over when the best beam ends. Other beams that end are dropped, and with them their width.
void BeamGroup::advance_bert4keras(std::vector<Beam> best) {
    auto ended = [&](const Beam& b) { return rules_.is_end(b.written.back()) && rules_.ends(b.end_tokens, length_); };
    const bool over = ended(best[0]);
    if (!over) best.erase(std::remove_if(best.begin(), best.end(), ended), best.end());
    width_ = best.size();
    beams_ = std::move(best);
    if (!over && length_ < std::size_t(rules_.maximum())) return;
    finished_.push_back(hypothesis(beams_[0], over));
    beams_.clear();
}

void BeamGroup::advance_samples() {
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
        const bool ended = rules_.is_end(c.token) && rules_.ends(beam.end_tokens, length_);
        if (ended || length_ == std::size_t(rules_.maximum())) {
            to = hypothesis(std::move(beam), ended);
            continue;
        }
        beams_[kept] = std::move(beam);
        sample_[kept++] = sample_[i];
    }
    beams_.resize(kept);
}

}  // namespace masquerade
