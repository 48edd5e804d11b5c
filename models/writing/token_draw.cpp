// SPDX-License-Identifier: MIT
// A token drawn from a row. Shares are exp((score - top) / temperature), that of the most likely token 1,
// in float.
#include <algorithm>
#include <cmath>

#include "engine/math/scalar.h"
#include "models/writing/token_scores.h"

namespace masquerade {
namespace {

constexpr int bins = 512, bins_a_nat = 16;  // of -log share; the last bin holds all that is left, below 1e-13

int bin_of(float score, float top, float scale) {
    return int(std::min((top - score) * scale * float(bins_a_nat), float(bins - 1)));
}

}  // namespace

// Of every token, and of every block; returns the sum.
double TokenScores::shares_of_all() {
    shares_.resize(scores_.size());
    share_of_block_.clear();
    double total = 0;
    for (int begin = 0; begin < size(); begin += block) {
        const float* from = scores_.data() + begin;
        float* to = shares_.data() + begin;
        const int n = std::min(block, size() - begin);
        for (int i = 0; i < n; i++) to[i] = exp_of((from[i] - top_) * scale_);
        share_of_block_.push_back(double(sum(OneLane(), n, [&](int i) { return to[i]; })));
        total += share_of_block_.back();
    }
    return total;
}

// Neither top-k nor top-p: whoever u of the whole falls to, in the order of ids.
int TokenScores::draw_of_all(double min_p, double u) {
    double total = shares_of_all();
    if (min_p > 0) {
        total = 0;
        for (std::size_t b = 0; b < share_of_block_.size(); b++) {
            share_of_block_[b] = 0;
            const std::size_t end = std::min((b + 1) * block, shares_.size());
            for (std::size_t i = b * block; i < end; i++) {
                if (double(shares_[i]) < min_p) shares_[i] = 0;
                share_of_block_[b] += double(shares_[i]);
            }
            total += share_of_block_[b];
        }
    }
    double left = u * total;
    int chosen = -1;
    for (std::size_t b = 0; b < share_of_block_.size(); b++) {
        if (share_of_block_[b] <= 0) continue;
        const bool here = left < share_of_block_[b];
        const std::size_t end = std::min((b + 1) * block, shares_.size());
        for (std::size_t i = b * block; i < end; i++) {
            if (shares_[i] <= 0) continue;
            chosen = int(i);  // the last one with a share, should rounding leave something over
            if (here && (left -= double(shares_[i])) < 0) return chosen;
        }
        if (here) return chosen;
        left -= share_of_block_[b];
    }
    return chosen;
}

float TokenScores::share_of(const Token& t) const { return exp_of((t.score - top_) * scale_); }

void TokenScores::best_of_bin(int bin) {
    best_.clear();
    for (int id = 0; id < size(); id++)
        if (shares_[std::size_t(id)] > 0 && bin_of(scores_[std::size_t(id)], top_, scale_) == bin)
            best_.push_back(Token{id, scores_[std::size_t(id)]});
    std::sort(best_.begin(), best_.end(), better);
}

// The best tokens of best_, until their shares reach `enough` or fall below min_p: how many, and their share.
TokenScores::Kept TokenScores::keep(double enough, double min_p) const {
    Kept kept;
    while (kept.count < best_.size() && kept.share < enough) {
        const double share = double(share_of(best_[kept.count]));
        if (share < min_p) break;
        kept.share += share;  // the one that crosses stays
        kept.count++;
    }
    return kept;
}

// Of the first `count` of best_.
int TokenScores::draw_of_best(std::size_t count, double left) const {
    for (std::size_t i = 0; i + 1 < count; i++)
        if ((left -= double(share_of(best_[i]))) < 0) return best_[i].id;
    return best_[count - 1].id;
}

// Top-p of all: tokens are counted into bins by likelihood, and only the bin in which p is reached and the
// one that the draw falls into are sorted.
int TokenScores::draw_of_bins(const SamplingOptions& options, double u) {
    const double enough = options.top_p * shares_of_all();
    share_of_bin_.assign(bins, 0);
    for (int id = 0; id < size(); id++)
        if (const float share = shares_[std::size_t(id)]; share > 0)
            share_of_bin_[std::size_t(bin_of(scores_[std::size_t(id)], top_, scale_))] += double(share);
    int last = 0;  // the bin where it ends, by top-p or by min-p
    double before = 0;
    const double lowest = options.min_p > 0 ? -std::log(options.min_p) * bins_a_nat : bins - 1;
    while (last < bins - 1 && last + 1 <= lowest && before + share_of_bin_[std::size_t(last)] < enough)
        before += share_of_bin_[std::size_t(last++)];
    best_of_bin(last);
    Kept kept = keep(enough - before, options.min_p);
    if (kept.count == 0 && before <= 0) kept = {1, double(share_of(best_[0]))};  // p = 0: the most likely one
    double left = u * (before + kept.share);
    if (left >= before && kept.count > 0) return draw_of_best(kept.count, left - before);
    int filled = 0;  // the last bin with a share, should rounding leave something over
    for (int bin = 0; bin < last; bin++) {
        if (share_of_bin_[std::size_t(bin)] <= 0) continue;
        filled = bin;
        if (left < share_of_bin_[std::size_t(bin)]) break;
        left -= share_of_bin_[std::size_t(bin)];
    }
    best_of_bin(filled);
    return draw_of_best(best_.size(), left);
}

int TokenScores::draw(const SamplingOptions& options, double u) {
    top_ = largest();
    if (!(top_ > -INFINITY)) return -1;
    if (options.temperature <= 0) return best(1)[0].id;
    scale_ = float(1 / options.temperature);
    if (options.top_k > 0 && options.top_k < size()) {
        best(options.top_k);
        double total = 0;
        for (const Token& t : best_) total += double(share_of(t));
        Kept kept = keep(options.top_p < 1 ? options.top_p * total : INFINITY, options.min_p);
        if (kept.count == 0) kept = {1, 1};
        return draw_of_best(kept.count, u * kept.share);
    }
    return options.top_p < 1 ? draw_of_bins(options, u) : draw_of_all(options.min_p, u);
}

}  // namespace masquerade
