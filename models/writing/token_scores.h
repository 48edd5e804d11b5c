// SPDX-License-Identifier: MIT
// The scores of one row of V tokens while a search works on it: copied from the logits, edited by the
// rules, then the best of them taken without a sort. In blocks whose largest score is known: few of them
// are looked into.
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
    // Copies logits (V) and finds log sum exp of them. Memory is kept from row to row.
    void read(const float* logits, int V);

    int size() const { return int(scores_.size()); }
    // log sum exp of the logits as they were read; NaN where one is NaN or infinite, or all are minus
    // infinity.
    double log_sum() const { return log_sum_; }
    float operator[](int token) const { return scores_[std::size_t(token)]; }
    void set(int token, float score);
    void forbid(int token);  // minus infinity: never chosen

    // The `count` best, the best first, equal ones by id; fewer where fewer are allowed. Live until the
    // next call.
    const std::vector<Token>& best(int count);

    // Draws a token by temperature, top-k, top-p and the number u in (0,1); -1 if none is allowed. The token is drawn
    // where the sum of shares passes u of the whole: in the order of ids, or, if top-k or top-p choose, of scores.
    int draw(const SearchOptions& options, double u);

  private:
    static bool better(const Token& a, const Token& b) { return a.score != b.score ? a.score > b.score : a.id < b.id; }
    static constexpr int block = 64;
    void find_largest(int block_index);
    float largest() const;

    double shares_of_all(float top, float scale);
    int draw_of_all(double left) const;

    std::vector<float> scores_;          // (V)
    std::vector<std::int32_t> largest_;  // of each block, as an integer of the same order
    std::vector<Token> best_;            // a heap, the worst in front, while it is filled
    double log_sum_ = 0;

    // of a draw: exp((score - largest) / temperature) of every token and of every block
    std::vector<float> shares_;  // (V)
    std::vector<double> share_of_block_;
};

}  // namespace masquerade
