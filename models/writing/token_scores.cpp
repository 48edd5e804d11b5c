// SPDX-License-Identifier: MIT
#include "models/writing/token_scores.h"

#include <algorithm>
#include <cmath>

#include "engine/math/scalar.h"

namespace masquerade {
namespace {

constexpr std::int32_t lowest = INT32_MIN;

// Integers in the order of the floats, so that the largest of many is found by vectors. -0 comes before 0,
// and NaN lies outside the infinities: both only make a block looked into, or not, that a comparison of
// floats then judges.
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

// exp(x - top) summed: floats in the lanes of a chunk, chunks in double.
double sum_of_exponentials(const float* x, int V, float top) {
    constexpr int chunk = 1024;
    double total = 0;
    for (int begin = 0; begin < V; begin += chunk) {
        const float* from = x + begin;
        total += sum(OneLane(), std::min(chunk, V - begin), [&](int i) { return exp_of(from[i] - top); });
    }
    return total;
}

}  // namespace

void TokenScores::find_largest(int b) {
    const int begin = b * block;
    largest_[std::size_t(b)] = largest_of(scores_.data() + begin, std::min(block, size() - begin));
}

float TokenScores::largest() const {
    return from_ordered(*std::max_element(largest_.begin(), largest_.end()));
}

void TokenScores::read(const float* logits, int V) {
    scores_.assign(logits, logits + V);
    largest_.resize(std::size_t((V + block - 1) / block));
    for (int b = 0; b < int(largest_.size()); b++) find_largest(b);
    const float top = largest();
    log_sum_ = double(top) + std::log(sum_of_exponentials(scores_.data(), V, top));
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

}  // namespace masquerade
