// SPDX-License-Identifier: MIT
#include "tokenizer/merger.h"

namespace masquerade {

void Merger::add(const std::vector<int>& tokens, Count count) {
    const int word = words_.size();
    words_.push_back({cut_.size(), int(tokens.size()), count});
    cut_.insert(cut_.end(), tokens.begin(), tokens.end());
    for (std::size_t i = 0; i + 1 < tokens.size(); i++) change(tokens[i], tokens[i + 1], count, word);
}

void Merger::run(int size, const std::function<void()>& progress) {
    constexpr int between_calls = 64;
    for (int merges = 0;;) {
        for (int pair : risen_) queue(pair);
        risen_.clear();
        if (tokens_.size() >= size || queue_.empty()) return;
        const Queued best = queue_.top();
        queue_.pop();
        Pair& pair = pairs_[best.pair];
        if (best.count != pair.queued) continue;  // an outdated entry: the pair has been queued again since
        pair.queued = 0;
        if (best.count != pair.count) {
            queue(best.pair);  // the count fell: queues the pair again if its count is still at least min_count_
        } else {
            if (merges++ % between_calls == 0) progress();
            merge(best.pair);
        }
    }
}

void Merger::change(int left, int right, Count by, int word) {
    // The hash table needs scrambled keys, and std::hash does not scramble integers. Multiplication by an odd number
    // scrambles the key without collisions.
    std::uint64_t both = (std::uint64_t(left) << 32 | std::uint32_t(right)) * 0x9E3779B97F4A7C15u;
    auto [place, is_new] = ids_.try_emplace(both, pairs_.size());
    if (is_new) pairs_.push_back({left, right});
    Pair& pair = pairs_[place->second];
    pair.count += by;
    if (by > 0) {
        risen_.push_back(place->second);
        if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
    } else if (pair.count == 0) {
        std::vector<int>().swap(pair.words);  // frees the memory
    }
}

void Merger::merge(int id) {
    Pair& pair = pairs_[id];
    const int left = pair.left, right = pair.right,
              merged = tokens_.add(tokens_.token(left) + tokens_.token(right).substr(2));
    const std::vector<int> words = std::move(pair.words);
    pair.words.clear();
    for (int w : words) merge_in(w, left, right, merged);
    pairs_[id].count = 0;  // `pair` is no longer valid: pairs_ may have grown
}

// Merges each occurrence of the pair (left, right) in word w into the token `merged`, from left to right. `kept` is the
// number of tokens of the new sequence so far.
void Merger::merge_in(int w, int left, int right, int merged) {
    Word& word = words_[w];
    int* tokens = &cut_[word.begin];
    int kept = 0, n = word.length;
    for (int i = 0; i < n; i++, kept++) {
        tokens[kept] = tokens[i];
        if (i + 1 == n || tokens[i] != left || tokens[i + 1] != right) continue;
        if (kept > 0) {
            change(tokens[kept - 1], left, -word.count, w);
            change(tokens[kept - 1], merged, word.count, w);
        }
        if (i + 2 < n) {
            change(right, tokens[i + 2], -word.count, w);
            change(merged, tokens[i + 2], word.count, w);
        }
        tokens[kept] = merged;
        i++;
    }
    word.length = kept;
}

void Merger::queue(int id) {
    Pair& pair = pairs_[id];
    if (pair.count < min_count_ || pair.count <= pair.queued) return;
    pair.queued = pair.count;
    queue_.push({pair.count, id});
}

bool Merger::Later::operator()(const Queued& a, const Queued& b) const {
    if (a.count != b.count) return a.count < b.count;
    const Pair &p = merger.pairs_[a.pair], &q = merger.pairs_[b.pair];
    const Vocabulary& tokens = merger.tokens_;
    if (p.left != q.left) return tokens.token(q.left) < tokens.token(p.left);
    return tokens.token(q.right) < tokens.token(p.right);
}

}  // namespace masquerade
