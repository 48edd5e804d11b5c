// SPDX-License-Identifier: MIT
#include "models/scoring/ngram.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"

namespace masquerade {
namespace {

double taken_off(const Ngram::Discounts& discounts, double count) {
    return count == 0 ? 0 : discounts[int(std::min(count, 3.0)) - 1];
}

// Returns a pointer to the n-gram `gram` in `level`, the table of all n-grams that have as many symbols as `gram`.
// Returns null if the training text does not contain `gram`.
template <class Level>
auto find(Level& level, std::u32string_view gram) {
    const auto found = std::lower_bound(level.grams.begin(), level.grams.end(), gram,
                                        [](const auto& g, std::u32string_view text) { return g.text < text; });
    return found != level.grams.end() && found->text == gram ? &*found : nullptr;
}

}  // namespace

Ngram::Ngram(int order, int vocabulary, const Texts& sentences) : vocabulary_(vocabulary) {
    if (order < 1 || vocabulary < 0)
        throw Error("an n-gram model of order ", order, " over ", vocabulary,
                    " symbols; the order is at least 1, the symbols at least 0");
    levels_.resize(order + 1);
    levels_[0].grams = {{{}, 0, 1.0 / (vocabulary + 1)}};
    for (const Tokens& sentence : sentences) text_ += marked(sentence);
    count();
    for (std::size_t n = 1; n < levels_.size(); n++) {
        set_discounts(levels_[n]);
        set_probabilities(levels_[n - 1], levels_[n]);
    }
}

// Returns begin(), the symbols of a sentence, and end().
std::u32string Ngram::marked(const Tokens& sentence) const {
    std::u32string all(1, begin());
    for (int symbol : sentence) {
        check(symbol, vocabulary_ - 1);
        all += char32_t(symbol);
    }
    return all += char32_t(end());
}

// Counts the n-grams of all orders. Then, in all orders except the highest, replaces the count of each n-gram by the
// number of different symbols that precede it, unless the n-gram starts with begin().
void Ngram::count() {
    std::vector<std::u32string_view> places;  // for each position of the text, the longest n-gram that starts there
    for (std::size_t at = 0; at < text_.size(); at++) {
        const std::u32string_view most(&text_[at], std::min(text_.size() - at, levels_.size() - 1));
        places.push_back(most.substr(0, std::min(most.find(end()), most.size() - 1) + 1));
    }
    std::sort(places.begin(), places.end());
    for (std::u32string_view place : places)
        for (std::size_t n = 1; n <= place.size(); n++) {
            std::vector<Gram>& grams = levels_[n].grams;
            if (grams.empty() || grams.back().text != place.substr(0, n)) grams.push_back({place.substr(0, n)});
            grams.back().count++;
        }
    for (std::size_t n = 1; n < levels_.size(); n++)
        for (Gram& g : levels_[n].grams) g.suffix = find(levels_[n - 1], g.text.substr(1));
    for (std::size_t n = 1; n + 1 < levels_.size(); n++) {
        for (Gram& g : levels_[n].grams)
            if (g.text[0] != char32_t(begin())) g.count = 0;
        for (const Gram& g : levels_[n + 1].grams) g.suffix->count++;
    }
    // begin() is never predicted, so its count is 0. It is the largest symbol, so it is the last n-gram of order 1.
    if (!levels_[1].grams.empty()) levels_[1].grams.back().count = 0;
}

void Ngram::set_discounts(Level& level) {
    std::array<double, 5> grams{};  // grams[c]: number of n-grams with the count c
    for (const Gram& g : level.grams)
        if (g.count >= 1 && g.count <= 4) grams[int(g.count)]++;
    if (std::count(grams.begin() + 1, grams.end(), 0.0) > 0) return;
    const double y = grams[1] / (grams[1] + 2 * grams[2]);
    Discounts found;
    for (int k = 1; k <= 3; k++) found[k - 1] = k - (k + 1) * y * grams[k + 1] / grams[k];
    if (*std::min_element(found.begin(), found.end()) > 0) level.discounts = found;
}

void Ngram::set_probabilities(Level& above, Level& level) {
    const auto context_of = [](const Gram& g) { return g.text.substr(0, g.text.size() - 1); };
    for (auto first = level.grams.begin(); first != level.grams.end();) {
        Gram& context = *find(above, context_of(*first));
        double sum = 0, off = 0;
        auto last = first;
        for (; last != level.grams.end() && context_of(*last) == context.text; ++last) {
            sum += last->count;
            off += taken_off(level.discounts, last->count);
        }
        context.gamma = sum > 0 ? off / sum : 1;
        for (; first != last; ++first)
            first->probability = (first->count - taken_off(level.discounts, first->count)) / sum +
                                 context.gamma * first->suffix->probability;
    }
}

// Returns the probability of the last symbol of `gram` after the symbols before it.
double Ngram::of_last(std::u32string_view gram) const {
    double gamma = 1;
    for (gram = gram.substr(gram.size() - std::min(gram.size(), levels_.size() - 1)); !gram.empty();
         gram.remove_prefix(1)) {
        if (const Gram* found = find(levels_[gram.size()], gram)) return gamma * found->probability;
        const Gram* context = find(levels_[gram.size() - 1], gram.substr(0, gram.size() - 1));
        if (context) gamma *= context->gamma;
    }
    return gamma * levels_[0].grams[0].probability;
}

double Ngram::probability(const Tokens& context, int symbol) const {
    for (int before : context) check(before, begin());
    check(symbol, end());
    return of_last(std::u32string(context.begin(), context.end()) + char32_t(symbol));
}

Numbers Ngram::log_probabilities(const Tokens& sentence) const {
    const std::u32string text = marked(sentence);
    Numbers logs;
    for (std::size_t n = 2; n <= text.size(); n++) logs.push_back(std::log(of_last({text.data(), n})));
    return logs;
}

void Ngram::check(int symbol, int last) const {
    if (symbol < 0 || symbol > last)
        throw Error("an n-gram model of ", vocabulary_, " symbols was given ", symbol, ", expected 0 to ", last);
}

}  // namespace masquerade
