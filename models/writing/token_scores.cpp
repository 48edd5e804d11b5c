// SPDX-License-Identifier: MIT
#include "models/writing/token_scores.h"

#include <cmath>
#include <functional>

#include "engine/math/scalar.h"
#include "engine/ops/shortlist.h"

namespace masquerade {
namespace {

constexpr std::int32_t lowest = INT32_MIN;

// Maps floats to integers that have the same order, because the maximum of many integers is fast with vector
// instructions. In this order, -0 is below 0, and a NaN is below -infinity or above +infinity. best() uses the integers
// only to skip blocks; within a block, it compares the floats.
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
    for (int half = 8; half > 0; half /= 2)
        for (int k = 0; k < half; k++) part[k] = std::max(part[k], part[k + half]);
    return part[0];
}

// Returns the sum of exp(x - top) over the V numbers x. It is added up in float within each part, and in double over
// the parts, as if the op shortlist had computed the parts.
double sum_of_exponentials(const float* x, int V, float top) {
    double total = 0;
    for (int begin = 0; begin < V; begin += logits_a_part) {
        const float* from = x + begin;
        total += sum(OneLane(), std::min(logits_a_part, V - begin), [&](int i) { return exp_of(from[i] - top); });
    }
    return total;
}

}  // namespace

void TokenScores::find_largest(int b) {
    const int begin = b * block;
    largest_[b] = largest_of(scores_.data() + begin, std::min(block, size() - begin));
}

float TokenScores::largest() const { return from_ordered(*std::max_element(largest_.begin(), largest_.end())); }

void TokenScores::read(const float* logits, int V) {
    logits_ = logits;
    listed_.clear();
    scores_.assign(logits, logits + V);
    largest_.resize((V + block - 1) / block);
    for (int b = 0; b < int(largest_.size()); b++) find_largest(b);
    log_sum_ = log_sum_of_scores();
}

double TokenScores::log_sum_of_scores() const {
    const float top = largest();
    return double(top) + std::log(sum_of_exponentials(scores_.data(), size(), top));
}

// If the scores are those of another shortlist, only the tokens of that shortlist can be above minus infinity.
void TokenScores::read(const Shortlists& lists, int row, int V) {
    if (listed_.empty() || size() != V) {
        scores_.assign(V, -INFINITY);
        largest_.assign((V + block - 1) / block, ordered(-INFINITY));
    } else {
        for (const Token& t : listed_) forbid(t.id);
    }
    listed_.clear();
    best_.clear();
    wanted_ = 1;  // so that certain() is false if draw() finds no allowed token before it calls best()
    const float *ids = lists.ids(row), *logits = lists.best(row), *sums = lists.sums(row);
    for (int i = 0; i < lists.width(); i++) {
        listed_.push_back({int(ids[i]), logits[i]});
        set(listed_[i].id, logits[i]);
    }
    double total = 0;
    for (int p = 0; p < lists.parts(); p++) total += sums[p];
    log_sum_ = double(logits[0]) + std::log(total);
}

float TokenScores::logit(int token) const {
    if (listed_.empty()) return logits_[token];
    return std::find_if(listed_.begin(), listed_.end(), [&](const Token& t) { return t.id == token; })->score;
}

// The tokens that are not listed are worse than the last listed token, and the rules have made none of them better. If
// the last listed logit is minus infinity, no other token is allowed.
bool TokenScores::certain() const {
    return listed_.empty() || listed_.back().score == -INFINITY ||
           (int(best_.size()) == wanted_ && !better(listed_.back(), best_.back()));
}

void TokenScores::set(int token, float score) {
    scores_[token] = score;
    find_largest(token / block);
}

void TokenScores::forbid(int token) { set(token, -INFINITY); }

// Each of the `count` blocks with the largest maxima has a score that is at least the smallest of these maxima. A
// smaller score is therefore not among the best. Returns minus infinity if there are fewer blocks.
float TokenScores::least_of_best(int count) {
    if (count > int(largest_.size())) return -INFINITY;
    ranked_ = largest_;
    std::nth_element(ranked_.begin(), ranked_.begin() + count - 1, ranked_.end(), std::greater<>());
    const float least = from_ordered(ranked_[count - 1]);
    if (std::isnan(least)) return -INFINITY;
    return least == 0 ? -0.0f : least;  // -0 and 0 are equal scores
}

const std::vector<TokenScores::Token>& TokenScores::best(int count) {
    best_.clear();
    wanted_ = count;
    const float least = least_of_best(count);
    float worst = -INFINITY;  // only larger scores enter best_; when best_ is full, this is its smallest score
    for (int b = 0; b < int(largest_.size()); b++) {
        if (largest_[b] < ordered(least) || largest_[b] <= ordered(worst)) continue;
        const int begin = b * block, end = std::min(begin + block, size());
        for (int id = begin; id < end; id++) {
            const float score = scores_[id];
            if (score < least || !(score > worst)) continue;
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

// Sets shares_ to exp((score - top) * scale) of every token, and share_of_block_ to the sum over each block of tokens.
// `top` is the largest score, and 1 / scale is the temperature. Returns the sum over all tokens.
double TokenScores::shares_of_all(float top, float scale) {
    shares_.resize(scores_.size());
    share_of_block_.clear();
    double total = 0;
    for (int begin = 0; begin < size(); begin += block) {
        const float* from = scores_.data() + begin;
        float* to = shares_.data() + begin;
        const int n = std::min(block, size() - begin);
        for (int i = 0; i < n; i++) to[i] = exp_of((from[i] - top) * scale);
        share_of_block_.push_back(double(sum(OneLane(), n, [&](int i) { return to[i]; })));
        total += share_of_block_.back();
    }
    return total;
}

int TokenScores::draw_of_all(double left) const {
    int chosen = -1;
    for (std::size_t b = 0; b < share_of_block_.size(); b++) {
        if (share_of_block_[b] <= 0) continue;
        const bool in_this_block = left < share_of_block_[b];
        const std::size_t end = std::min((b + 1) * block, shares_.size());
        for (std::size_t i = b * block; i < end; i++) {
            if (shares_[i] <= 0) continue;
            chosen = int(i);
            if (in_this_block && (left -= double(shares_[i])) < 0) return chosen;
        }
        // Rounding can keep `left` at 0 or above. Then the last token of the block with a share above 0 is drawn.
        if (in_this_block) return chosen;
        left -= share_of_block_[b];
    }
    return chosen;
}

int TokenScores::draw(const SearchOptions& options, double u) {
    const float top = largest(), scale = float(1 / options.temperature);
    if (!(top > -INFINITY)) return -1;
    auto share = [&](const Token& t) { return double(exp_of((t.score - top) * scale)); };
    const bool only_top_k = options.top_k > 0 && options.top_k < size();
    double total = 0;
    if (only_top_k)
        for (const Token& t : best(options.top_k)) total += share(t);
    else
        total = shares_of_all(top, scale);
    if (!only_top_k && options.top_p >= 1) return draw_of_all(u * total);
    const double needed = options.top_p < 1 ? options.top_p * total : INFINITY;
    std::size_t kept = 0;
    double reached = 0;
    for (int count = only_top_k ? options.top_k : block;; count *= 8) {  // ranks more tokens until `needed` is reached
        best(count);
        while (kept < best_.size() && (kept == 0 || reached < needed))
            reached += share(best_[kept++]);  // the token with which the sum reaches `needed` is kept as well
        if (only_top_k || reached >= needed || count >= size()) break;
    }
    double left = u * reached;
    for (std::size_t i = 0; i + 1 < kept; i++)
        if ((left -= share(best_[i])) < 0) return best_[i].id;
    return best_[kept - 1].id;
}

}  // namespace masquerade
