// SPDX-License-Identifier: MIT
#include "tokenizer/merger.h"

#include <algorithm>

#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

namespace {

using Wide = unsigned __int128;

constexpr std::int64_t between_questions = 1 << 18;  // words and pairs looked at

// Whether x / p > y / q: +1, 0 or -1, for any positive counts. Products have up to 189 bits.
int compare_fractions(std::int64_t x, Wide p, std::int64_t y, Wide q) {
    auto multiply = [](std::uint64_t a, Wide b) {
        Wide low = Wide(a) * std::uint64_t(b);
        return std::make_pair(Wide(a) * std::uint64_t(b >> 64) + (low >> 64), std::uint64_t(low));
    };
    auto left = multiply(std::uint64_t(x), q), right = multiply(std::uint64_t(y), p);
    return left < right ? -1 : left > right;
}

}  // namespace

int TokenList::add(const std::string& token) {
    auto [place, is_new] = ids_.try_emplace(token, size());
    if (is_new) {
        tokens_.push_back(token);
        lengths_.push_back(int(std::count_if(token.begin(), token.end(), starts_code_point)) -
                           (continues(token) ? 2 : 0));
    }
    return place->second;
}

int TokenList::find(const std::string& token) const {
    auto place = ids_.find(token);
    return place == ids_.end() ? -1 : place->second;
}

void Merger::add(const std::vector<int>& tokens, Count count) {
    int word = int(words_.size());
    words_.push_back({cut_.size(), int(tokens.size()), count});
    cut_.insert(cut_.end(), tokens.begin(), tokens.end());
    for (int token : tokens) count_of(token) += count;
    for (std::size_t i = 0; i + 1 < tokens.size(); i++) change(tokens[i], tokens[i + 1], count, word);
}

bool Merger::run(int size, const std::function<bool()>& goes_on) {
    std::int64_t looked_at = between_questions;
    for (int pair : touched_) refresh(pair);
    while (tokens_.size() < size && !heap_.empty()) {
        if (looked_at >= between_questions) {
            if (!goes_on()) return false;
            looked_at = 0;
        }
        int best = heap_[0].pair;
        looked_at += std::int64_t(pairs_[std::size_t(best)].words.size()) + 1;
        merge(best);
        looked_at += std::int64_t(touched_.size());
    }
    return true;
}

Merger::Count& Merger::count_of(int token) {
    if (counts_.size() <= std::size_t(token)) {
        counts_.resize(std::size_t(token) + 1);
        pairs_with_.resize(counts_.size());
    }
    return counts_[std::size_t(token)];
}

int Merger::pair_of(int left, int right) {
    // Mixed, since the table's hash is the number itself (Fibonacci hashing).
    std::uint64_t both = (std::uint64_t(left) << 32 | std::uint32_t(right)) * 0x9E3779B97F4A7C15u;
    auto [place, is_new] = ids_.try_emplace(both, int(pairs_.size()));
    if (is_new) {
        pairs_.push_back({left, right, 0, -1, -1, {}});
        if (score_ == Score::likelihood) {
            pairs_with_[std::size_t(left)].push_back(place->second);
            if (left != right) pairs_with_[std::size_t(right)].push_back(place->second);
        }
    }
    return place->second;
}

void Merger::change(int left, int right, Count by, int word) {
    int id = pair_of(left, right);
    Pair& pair = pairs_[std::size_t(id)];
    pair.count += by;
    if (by > 0 && (pair.words.empty() || pair.words.back() != word)) pair.words.push_back(word);
    touch(id);
}

void Merger::touch(int pair) {
    if (pairs_[std::size_t(pair)].touched == merges_) return;
    pairs_[std::size_t(pair)].touched = merges_;
    touched_.push_back(pair);
}

void Merger::merge(int pair) {
    int left = pairs_[std::size_t(pair)].left, right = pairs_[std::size_t(pair)].right;
    int merged = tokens_.add(tokens_[left] + tokens_[right].substr(2));
    std::vector<int> words;
    words.swap(pairs_[std::size_t(pair)].words);
    merges_++;
    touched_.clear();
    Count count = 0;
    count_of(merged);
    for (int w : words) count += merge_in(w, left, right, merged) * words_[std::size_t(w)].count;
    count_of(merged) += count;
    count_of(left) -= count;
    count_of(right) -= count;
    pairs_[std::size_t(pair)].count = 0;
    touch(pair);
    if (score_ == Score::likelihood)
        for (int token : {left, right, merged})
            for (int p : pairs_with_[std::size_t(token)]) touch(p);
    for (int p : touched_) refresh(p);
}

// In one word, from left to right, and how often; the tokens that are done stand before `kept`.
int Merger::merge_in(int w, int left, int right, int merged) {
    Word& word = words_[std::size_t(w)];
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
    return n - kept;
}

// Gives a pair the place in the heap that its counts ask for now.
void Merger::refresh(int id) {
    Pair& pair = pairs_[std::size_t(id)];
    if (pair.count < min_count_ ||
        (longest_ > 0 && tokens_.length(pair.left) + tokens_.length(pair.right) > longest_)) {
        if (pair.place >= 0) remove(std::size_t(pair.place));
        if (pair.count == 0) std::vector<int>().swap(pair.words);
        return;
    }
    Candidate now{double(pair.count), pair.count, 1, 1, id};
    if (score_ == Score::likelihood) {
        now.left = counts_[std::size_t(pair.left)];
        now.right = counts_[std::size_t(pair.right)];
        now.score /= double(now.left) * double(now.right);
    }
    if (pair.place < 0) {
        heap_.push_back(now);
        rise(heap_.size() - 1, now);
        return;
    }
    const Candidate& before = heap_[std::size_t(pair.place)];
    if (now.count == before.count && now.left == before.left && now.right == before.right) return;
    if (better(now, before))
        rise(std::size_t(pair.place), now);
    else
        sink(std::size_t(pair.place), now);
}

bool Merger::better(const Candidate& a, const Candidate& b) const {
    // A rounded score is off by less than 1e-15 of it; where that could matter, whole numbers decide.
    double differ = a.score - b.score, margin = 1e-14 * a.score;
    if (differ > margin || differ < -margin) return differ > 0;
    int order =
        compare_fractions(a.count, Wide(a.left) * Wide(a.right), b.count, Wide(b.left) * Wide(b.right));
    if (order != 0) return order > 0;
    const Pair &p = pairs_[std::size_t(a.pair)], &q = pairs_[std::size_t(b.pair)];
    if (p.left != q.left) return tokens_[p.left] < tokens_[q.left];
    return tokens_[p.right] < tokens_[q.right];
}

void Merger::put(std::size_t place, const Candidate& candidate) {
    heap_[place] = candidate;
    pairs_[std::size_t(candidate.pair)].place = int(place);
}

// Puts a candidate at a place, or above it.
void Merger::rise(std::size_t place, const Candidate& candidate) {
    Candidate rising = candidate;
    while (place > 0 && better(rising, heap_[(place - 1) / 2])) {
        put(place, heap_[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(place, rising);
}

// Puts a candidate at a place, or below it.
void Merger::sink(std::size_t place, const Candidate& candidate) {
    Candidate sinking = candidate;
    while (true) {
        std::size_t child = 2 * place + 1;
        if (child >= heap_.size()) break;
        if (child + 1 < heap_.size() && better(heap_[child + 1], heap_[child])) child++;
        if (!better(heap_[child], sinking)) break;
        put(place, heap_[child]);
        place = child;
    }
    put(place, sinking);
}

void Merger::remove(std::size_t place) {
    pairs_[std::size_t(heap_[place].pair)].place = -1;
    Candidate last = heap_.back();
    heap_.pop_back();
    if (place == heap_.size()) return;
    if (place > 0 && better(last, heap_[(place - 1) / 2]))
        rise(place, last);
    else
        sink(place, last);
}

}  // namespace masquerade
