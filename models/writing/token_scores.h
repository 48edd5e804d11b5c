// SPDX-License-Identifier: MIT
// The scores of one row of V tokens in a search: copied from the logits and edited by the rules. best() finds the best
// tokens without sorting: the largest score of each block is known, so only a few blocks are searched.
#pragma once
#include <cstdint>
#include <vector>

#include "models/writing/search.h"

namespace masquerade {

class TokenScores {
  public:
    struct Token {
        int id;
        float score;
    };
    // Copies logits (V) and computes their log-sum-exp. Memory is reused from row to row.
    void read(const float* logits, int V);

    int size() const { return int(scores_.size()); }
    // log-sum-exp of the logits before any edit; not finite if a logit is NaN or +infinity, or all are -infinity.
    double log_sum() const { return log_sum_; }
    float operator[](int token) const { return scores_[std::size_t(token)]; }
    void set(int token, float score);
    void forbid(int token);  // sets the score to minus infinity

    // The `count` >= 1 best tokens, best first, ties by id; fewer if fewer are allowed. Valid until the next call.
    const std::vector<Token>& best(int count);

    // Samples a token with temperature, top-k, top-p and the number u in (0,1): returns the first token whose
    // cumulative probability exceeds u. The order is by id or, with top-k or top-p, by score, best first. Returns -1 if
    // no token is allowed.
    int draw(const SearchOptions& options, double u);

  private:
    static bool better(const Token& a, const Token& b) { return a.score != b.score ? a.score > b.score : a.id < b.id; }
    static constexpr int block = 64;
    void find_largest(int block_index);
    float largest() const;

    double shares_of_all(float top, float scale);
    int draw_of_all(double left) const;

    std::vector<float> scores_;          // (V)
    std::vector<std::int32_t> largest_;  // largest score of each block, as an ordered integer
    std::vector<Token> best_;            // while best() fills it, a heap with the worst token in front
    double log_sum_ = 0;

    // Used by draw(): exp((score - largest score) / temperature) of every token, and the sum of each block.
    std::vector<float> shares_;  // (V)
    std::vector<double> share_of_block_;
};

}  // namespace masquerade
