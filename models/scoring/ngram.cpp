// SPDX-License-Identifier: MIT
#include "models/scoring/ngram.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/error.h"

namespace masquerade {
namespace {

double taken_off(const Ngram::Discounts& discounts, double count) {
    return count == 0 ? 0 : discounts[std::size_t(std::min(count, 3.0)) - 1];
}

}  // namespace

Ngram::Ngram(int order, int vocabulary, const std::vector<std::vector<int>>& sentences) : vocabulary_(vocabulary) {
    if (order < 1 || vocabulary < 0)
        throw Error(text("an n-gram model of order ", order, " over ", vocabulary,
                         " symbols; the order is at least 1, the symbols at least 0"));
    levels_.resize(std::size_t(order) + 1);
    count(marked_text(sentences));
    link();
    count_what_precedes();
    set_discounts();
    set_probabilities();
}

std::vector<int> Ngram::marked_text(const std::vector<std::vector<int>>& sentences) const {
    std::vector<int> text;
    for (const std::vector<int>& sentence : sentences) {
        text.push_back(begin());
        for (int symbol : sentence) {
            check(symbol, vocabulary_ - 1);
            text.push_back(symbol);
        }
        text.push_back(end());
    }
    if (text.size() >= none)
        throw BadInput(masquerade::text("an n-gram model of ", text.size(), " symbols; it can count ", none - 1));
    return text;
}

// Sorts the positions of the text by the n-grams that start there. Equal n-grams are then adjacent, so that one pass
// over the positions finds and counts the different n-grams of all orders.
void Ngram::count(const std::vector<int>& text) {
    const std::size_t most = levels_.size() - 1;
    std::vector<Index> places(text.size());
    std::iota(places.begin(), places.end(), Index(0));
    std::sort(places.begin(), places.end(), [&](Index a, Index b) {
        for (std::size_t k = 0; k < most; k++) {
            if (text[a + k] != text[b + k]) return text[a + k] < text[b + k];
            if (text[a + k] == end()) break;  // no n-gram goes beyond the end of its sentence
        }
        return false;
    });
    levels_[0].first_child = {0};
    const int* before = nullptr;
    for (Index place : places) {
        const int* now = &text[place];
        std::size_t shared = 0, length = 0;
        while (length < most && (length == 0 || now[length - 1] != end())) length++;
        while (before && shared < length && before[shared] == now[shared]) shared++;
        for (std::size_t n = 1; n <= length; n++) {
            Level& level = levels_[n];
            if (n > shared) {
                level.symbol.push_back(now[n - 1]);
                level.count.push_back(0);
                if (n < most) level.first_child.push_back(Index(levels_[n + 1].symbol.size()));
            }
            level.count.back()++;
        }
        before = now;
    }
    for (std::size_t n = 0; n < most; n++) levels_[n].first_child.push_back(Index(levels_[n + 1].symbol.size()));
}

void Ngram::link() {
    levels_[0].suffix = {0};
    for (std::size_t n = 1; n < levels_.size(); n++) {
        const Level& above = levels_[n - 1];
        Level& level = levels_[n];
        level.suffix.resize(level.symbol.size());
        for (Index parent = 0; parent < above.suffix.size(); parent++)
            for (Index i = above.first_child[parent]; i < above.first_child[parent + 1]; i++)
                level.suffix[i] = n == 1 ? 0 : child({n - 2, above.suffix[parent]}, level.symbol[i]);
    }
}

// In all orders except the highest, replaces the count of an n-gram by the number of different symbols that precede it.
// begin() is the largest symbol, so the n-grams that start with it are the last ones of their level.
void Ngram::count_what_precedes() {
    Index with_begin = 0;  // index in the level of the first n-gram that starts with begin()
    for (std::size_t n = 1; n + 1 < levels_.size(); n++) {
        Level& level = levels_[n];
        if (level.symbol.empty()) return;
        with_begin = n == 1 ? Index(level.symbol.size() - 1) : levels_[n - 1].first_child[with_begin];
        std::fill(level.count.begin(), level.count.begin() + with_begin, 0.0);
        for (Index suffix : levels_[n + 1].suffix) level.count[suffix]++;
    }
}

void Ngram::set_discounts() {
    for (std::size_t n = 1; n < levels_.size(); n++) {
        Level& level = levels_[n];
        if (n == 1 && !level.count.empty()) level.count.back() = 0;  // begin() is never predicted
        std::array<double, 5> grams{};                               // grams[c]: number of n-grams with the count c
        for (double count : level.count)
            if (count >= 1 && count <= 4) grams[std::size_t(count)]++;
        level.discounts = {0.5, 1, 1.5};
        if (std::count(grams.begin() + 1, grams.end(), 0.0) > 0) continue;
        const double y = grams[1] / (grams[1] + 2 * grams[2]);
        Discounts found;
        for (std::size_t k = 1; k <= 3; k++) found[k - 1] = double(k) - double(k + 1) * y * grams[k + 1] / grams[k];
        if (*std::min_element(found.begin(), found.end()) > 0) level.discounts = found;
    }
}

void Ngram::set_probabilities() {
    levels_[0].probability = {1.0 / (vocabulary_ + 1)};
    for (std::size_t n = 1; n < levels_.size(); n++) {
        Level &above = levels_[n - 1], &level = levels_[n];
        level.probability.resize(level.symbol.size());
        for (Index parent = 0; parent + 1 < above.first_child.size(); parent++) {
            const Index first = above.first_child[parent], last = above.first_child[parent + 1];
            double sum = 0, off = 0;
            for (Index i = first; i < last; i++) {
                sum += level.count[i];
                off += taken_off(level.discounts, level.count[i]);
            }
            const double gamma = sum > 0 ? off / sum : 1;
            above.gamma.push_back(gamma);
            for (Index i = first; i < last; i++)
                level.probability[i] = (level.count[i] - taken_off(level.discounts, level.count[i])) / sum +
                                       gamma * above.probability[level.suffix[i]];
        }
    }
    for (Level& level : levels_) level.count = {};
}

Ngram::Index Ngram::child(const Place& parent, int symbol) const {
    const Level &level = levels_[parent.order], &below = levels_[parent.order + 1];
    auto first = below.symbol.begin() + level.first_child[parent.index],
         last = below.symbol.begin() + level.first_child[parent.index + 1],
         found = std::lower_bound(first, last, symbol);
    return found != last && *found == symbol ? Index(found - below.symbol.begin()) : none;
}

// Returns the probability of `symbol` after the context `place`. Moves `place` to the longest context in the trie that
// ends with `symbol`.
double Ngram::advance(Place& place, int symbol) const {
    double gamma = 1;
    for (;;) {
        const Level& level = levels_[place.order];
        const Index next = child(place, symbol);
        if (next != none) {
            const Level& below = levels_[place.order + 1];
            const double p = gamma * below.probability[next];
            const bool highest = place.order + 1 == levels_.size() - 1;
            place = highest ? Place{place.order, below.suffix[next]} : Place{place.order + 1, next};
            return p;
        }
        gamma *= level.gamma[place.index];
        if (place.order == 0) return gamma * level.probability[0];
        place = Place{place.order - 1, level.suffix[place.index]};
    }
}

double Ngram::probability(const std::vector<int>& context, int symbol) const {
    Place place;
    for (int before : context) {
        check(before, begin());
        advance(place, before);
    }
    check(symbol, end());
    return advance(place, symbol);
}

std::vector<double> Ngram::log_probabilities(const std::vector<int>& sentence) const {
    Place place;
    advance(place, begin());
    std::vector<double> logs;
    for (int symbol : sentence) {
        check(symbol, vocabulary_ - 1);
        logs.push_back(std::log(advance(place, symbol)));
    }
    logs.push_back(std::log(advance(place, end())));
    return logs;
}

void Ngram::check(int symbol, int last) const {
    if (symbol < 0 || symbol > last)
        throw Error(text("an n-gram model of ", vocabulary_, " symbols was given ", symbol, ", expected 0 to ", last));
}

}  // namespace masquerade
