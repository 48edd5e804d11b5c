// SPDX-License-Identifier: MIT
#include "models/decoding/token_scores.h"

#include <algorithm>
#include <cmath>

#include "engine/math/scalar.h"

namespace masquerade {
namespace {

constexpr std::int32_t lowest = INT32_MIN;

// Integers in the order of the floats, so that the largest of many is found by vectors. -0 comes before 0, and NaN lies
// outside the infinities: both only make a block looked into, or not, that a comparison of floats then judges.
std::int32_t ordered(float x) {
    std::int32_t bits = std::int32_t(bits_of(x));
    return bits ^ ((bits >> 31) & 0x7fffffff);
}
float from_ordered(std::int32_t i) { return float_of(std::uint32_t(i ^ ((i >> 31) & 0x7fffffff))); }

std::int32_t largest_of(const float* x, int n) {
    std::int32_t part[16];
    std::fill_n(part, 16, lowest);
    int i = 0;
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++) part[k] = std::max(part[k], ordered(x[i + k]));
    for (; i < n; i++) part[0] = std::max(part[0], ordered(x[i]));
    return *std::max_element(part, part + 16);
}

bool better(const TokenScores::Token& a, const TokenScores::Token& b) {
    return a.score != b.score ? a.score > b.score : a.id < b.id;
}

// exp(scale (x - top)) summed: floats in the lanes of a chunk, chunks in double.
double sum_of_exponentials(const float* x, int V, float top, float scale) {
    constexpr int chunk = 1024;
    double total = 0;
    for (int begin = 0; begin < V; begin += chunk) {
        const float* from = x + begin;
        total += sum(OneLane(), std::min(chunk, V - begin),
                     [&](int i) { return exp_of((from[i] - top) * scale); });
    }
    return total;
}

}  // namespace

void TokenScores::find_largest(int b) {
    const int begin = b * block;
    largest_[std::size_t(b)] = largest_of(scores_.data() + begin, std::min(block, size() - begin));
}

void TokenScores::read(const float* logits, int V) {
    scores_.assign(logits, logits + V);
    largest_.resize(std::size_t((V + block - 1) / block));
    for (int b = 0; b < int(largest_.size()); b++) find_largest(b);
    const float top = from_ordered(*std::max_element(largest_.begin(), largest_.end()));
    log_sum_ = double(top) + std::log(sum_of_exponentials(scores_.data(), V, top, 1));
}

void TokenScores::set(int token, float score) {
    scores_[std::size_t(token)] = score;
    find_largest(token / block);
}

void TokenScores::forbid(int token) { set(token, -INFINITY); }

const std::vector<TokenScores::Token>& TokenScores::best(int count) {
    best_.clear();
    float worst = -INFINITY;  // what a token must exceed: of `count` the worst, else minus infinity
    for (int b = 0; b < int(largest_.size()); b++) {
        if (largest_[std::size_t(b)] <= ordered(worst)) continue;
        const int begin = b * block, end = std::min(begin + block, size());
        for (int id = begin; id < end; id++) {
            const float score = scores_[std::size_t(id)];
            if (!(score > worst)) continue;
            if (int(best_.size()) == count) {
                std::pop_heap(best_.begin(), best_.end(), better);
                best_.pop_back();
            }
            best_.push_back(Token{id, score});
            std::push_heap(best_.begin(), best_.end(), better);
            if (int(best_.size()) == count) worst = best_.front().score;
        }
    }
    std::sort_heap(best_.begin(), best_.end(), better);
    return best_;
}

double TokenScores::shares_of_all(double temperature, float top) {
    const float scale = float(1 / temperature);
    shares_.resize(scores_.size());
    share_of_block_.clear();
    double total = 0;
    for (int begin = 0; begin < size(); begin += block) {
        const float* from = scores_.data() + begin;
        float* to = shares_.data() + begin;
        const int n = std::min(block, size() - begin);
        for (int i = 0; i < n; i++) to[i] = exp_of((from[i] - top) * scale);
        share_of_block_.push_back(sum(OneLane(), n, [&](int i) { return to[i]; }));
        total += share_of_block_.back();
    }
    return total;
}

// Neither top-k nor top-p: whoever u of the whole falls to, in the order of ids.
int TokenScores::draw_of_all(const SamplingOptions& options, float top, double u) {
    double total = shares_of_all(options.temperature, top);
    if (options.min_p > 0) {
        total = 0;
        for (std::size_t b = 0; b < share_of_block_.size(); b++) {
            share_of_block_[b] = 0;
            const std::size_t end = std::min((b + 1) * block, shares_.size());
            for (std::size_t i = b * block; i < end; i++) {
                if (double(shares_[i]) < options.min_p) shares_[i] = 0;
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

int TokenScores::draw(const SamplingOptions& options, double u) {
    const float top = from_ordered(*std::max_element(largest_.begin(), largest_.end()));
    if (!(top > -INFINITY)) return -1;
    if (options.temperature <= 0) return best(1)[0].id;
    const bool few = options.top_k > 0 && options.top_k < size();
    if (!few && options.top_p >= 1) return draw_of_all(options, top, u);

    double total = 0, reached = 0;
    std::size_t keep = 0;
    if (!few) total = shares_of_all(options.temperature, top);
    // Of all, a few are mostly enough to reach p; else eight times as many are tried.
    for (int count = few ? options.top_k : 64;; count = std::min(size(), 8 * count)) {
        best(count);
        shares_.resize(std::max(shares_.size(), best_.size()));
        const float scale = float(1 / options.temperature);
        for (std::size_t i = 0; i < best_.size(); i++) shares_[i] = exp_of((best_[i].score - top) * scale);
        if (few)
            for (std::size_t i = 0; i < best_.size(); i++) total += double(shares_[i]);
        reached = 0;
        for (keep = 0; keep < best_.size() && (keep == 0 || reached < options.top_p * total); keep++)
            reached += double(shares_[keep]);  // the one that crosses p stays
        if (few || reached >= options.top_p * total || count == size()) break;
    }
    while (keep > 1 && double(shares_[keep - 1]) < options.min_p) reached -= double(shares_[--keep]);
    double left = u * reached;
    for (std::size_t i = 0; i + 1 < keep; i++)
        if ((left -= double(shares_[i])) < 0) return best_[i].id;
    return best_[keep - 1].id;
}

}  // namespace masquerade
