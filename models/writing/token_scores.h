// SPDX-License-Identifier: MIT
// The scores of one row of V tokens while a search works on it: copied from the logits, edited by the
// rules, then the best of them taken without a sort. In blocks whose largest score is known: few of them
// are looked into.
#pragma once
#include <cstdint>
#include <vector>

#include "models/writing/sampling.h"

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

    // A token by temperature, top-k, top-p, min-p, and the draw u in (0,1); -1 where none is allowed. The
    // rule of choose_token, which defines it, with exponentials in float.
    int draw(const SamplingOptions& options, double u);

  private:
    struct Kept {
        std::size_t count = 0;
        double share = 0;
    };
    static bool better(const Token& a, const Token& b) {
        return a.score != b.score ? a.score > b.score : a.id < b.id;
    }
    static constexpr int block = 64;
    void find_largest(int block_index);
    float largest() const;

    // token_draw.cpp
    double shares_of_all();
    float share_of(const Token& token) const;
    int draw_of_all(double min_p, double u);
    int draw_of_bins(const SamplingOptions& options, double u);
    int draw_of_best(std::size_t count, double left) const;
    void best_of_bin(int bin);  // into best_
    Kept keep(double enough, double min_p) const;

    std::vector<float> scores_;          // (V)
    std::vector<std::int32_t> largest_;  // of each block, as an integer of the same order
    std::vector<Token> best_;            // a heap, the worst in front, while it is filled
    double log_sum_ = 0;

    float top_ = 0, scale_ = 1;  // of a draw: the largest score, and 1 / temperature
    std::vector<float> shares_;  // (V)
    std::vector<double> share_of_block_, share_of_bin_;
};

}  // namespace masquerade
