// SPDX-License-Identifier: MIT
// The scores of all V tokens of the vocabulary, each as a candidate for the next token of one prefix. The scores are
// copied from the model's logits; the rules of the search (SearchRules) then change them. best() does not sort all V
// scores: the largest score of each block of 64 tokens is known, so most blocks can be skipped.
//
// If a device has chosen the best tokens (Shortlists), only their logits are known. The scores of all other tokens are
// then minus infinity, and certain() says whether the result is the one that all logits would give.
#pragma once
#include <algorithm>

#include "engine/ops/cpu/parallel.h"
#include "models/writing/search.h"
#include "models/writing/shortlists.h"

namespace masquerade {

class TokenScores {
  public:
    struct Token {
        int id;
        float score;
    };
    // Copies the V logits and computes their log-sum-exp. Further calls reuse the memory of the first. The logits must
    // stay unchanged until the next read().
    void read(const float* logits, int V);
    // Copies the logits of a shortlist; V is the number of all tokens. The log-sum-exp has the same bits as above.
    void read(const Shortlists& lists, int row, int V);

    int size() const { return scores_.size(); }
    // Returns the log-sum-exp of the unchanged logits. It is not finite if a logit is NaN or +infinity, or if all
    // logits are -infinity.
    double log_sum() const { return log_sum_; }
    double log_sum_of_scores() const;  // the log-sum-exp of the scores as they are now
    float logit(int token) const;      // the unchanged logit of a token whose score is above minus infinity
    float operator[](int token) const { return scores_[token]; }
    void set(int token, float score);
    void forbid(int token);  // sets the score to minus infinity

    // Returns the `count` tokens with the largest scores, largest first; tokens with equal scores are in the order of
    // their ids. Returns fewer tokens if fewer have a score above minus infinity. `count` must be at least 1. The
    // result is valid until the next call of best() or draw().
    const std::vector<Token>& best(int count);

    // Samples a token with temperature, top-k, top-p and the random number u in (0,1): returns the first token at which
    // the cumulative probability exceeds u. Probabilities are added up in the order of ids or, with top-k or top-p,
    // from the largest score to the smallest. Returns -1 if no token is allowed.
    int draw(const SearchOptions& options, double u);

    // Whether the last result of best() or draw() since read() does not depend on logits that a shortlist leaves out.
    // The scores must not have been raised. draw() must have been called with a top_k that keeps few tokens.
    bool certain() const;

  private:
    static bool better(const Token& a, const Token& b) { return a.score != b.score ? a.score > b.score : a.id < b.id; }
    static constexpr int block = 64;
    void find_largest(int block_index);
    float largest() const;
    float least_of_best(int count);  // a lower bound of the scores that best(count) returns

    double shares_of_all(float top, float scale);
    int draw_of_all(double left) const;

    std::vector<float> scores_;  // the score of each token of the vocabulary
    // Largest score of each block of 64 tokens, mapped to an integer by ordered() in token_scores.cpp.
    std::vector<std::int32_t> largest_;
    std::vector<std::int32_t> ranked_;  // used by least_of_best(): the largest scores, in another order
    std::vector<Token> best_;           // the result of best(); while it is filled, a heap with the worst token first
    int wanted_ = 0;                    // the `count` of the last call of best()
    double log_sum_ = 0;
    const float* logits_ = nullptr;  // the logits that read() has copied
    std::vector<Token> listed_;      // the shortlist that read() has copied, best first; empty: all logits are known

    // Used by draw(): exp((score - largest score) / temperature) of every token, and the sum over each block of tokens.
    std::vector<float> shares_;  // one number per token
    Numbers share_of_block_;
};

// Calls use(i, scores) for each of the rows of V logits, on several threads. Each thread has its own scores.
template <class Use>
void each_row_of_logits(std::size_t rows, int V, Use use) {
    // Minimum number of logits per thread. With fewer, starting a thread takes more time than the thread saves.
    constexpr int numbers_a_piece = 1 << 15;
    parallel_for(std::int64_t(rows), std::max(1, numbers_a_piece / V), [&](std::int64_t begin, std::int64_t end) {
        static thread_local TokenScores scores;
        for (std::int64_t i = begin; i < end; i++) use(i, scores);
    });
}

}  // namespace masquerade
