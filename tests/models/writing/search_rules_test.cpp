// SPDX-License-Identifier: MIT
// Tests the rules of what may be written. With its option, a rule must hold in every result; without the option, some
// result must break it.
#include "tests/models/writing/search_toy.h"

using namespace masquerade;

namespace {

constexpr int V = 7;

// Returns options for a greedy search, a beam search and sampling, each changed by `change`.
std::vector<SearchOptions> kinds(const std::function<void(SearchOptions&)>& change) {
    std::vector<SearchOptions> all(3);
    all[1].beams = all[1].n_best = 3;
    all[2].samples = 4;
    for (SearchOptions& o : all) {
        o.maximum = 12;
        change(o);
    }
    return all;
}

// Checks for each kind of search that no hypothesis breaks `rule` with the option, and that some do without it.
void holds(const std::function<void(SearchOptions&)>& change, const std::function<bool(const Hypothesis&)>& rule) {
    const auto from = toy::sources(30);
    auto broken = [&](const SearchOptions& options) {
        int count = 0;
        for (const auto& list : toy::run(V, from, options)) {
            CHECK(!list.empty());
            for (const Hypothesis& h : list) count += !rule(h);
        }
        return count;
    };
    for (const SearchOptions& options : kinds([](SearchOptions&) {})) CHECK(broken(options) > 0);
    for (const SearchOptions& options : kinds(change)) CHECK(broken(options) == 0);
}

int count_of(const std::vector<int>& tokens, int token) { return int(std::count(tokens.begin(), tokens.end(), token)); }

// Returns how often the most frequent n-gram without `exempt` occurs. The first token of the source counts, too.
int most_repeated(std::vector<int> tokens, int n, int exempt) {
    tokens.insert(tokens.begin(), 0);
    std::multiset<std::vector<int>> grams;
    for (std::size_t i = 0; i + std::size_t(n) <= tokens.size(); i++) {
        const std::vector<int> gram(tokens.begin() + std::ptrdiff_t(i), tokens.begin() + std::ptrdiff_t(i) + n);
        if (count_of(gram, exempt) == 0) grams.insert(gram);
    }
    int most = 0;
    for (const auto& gram : grams) most = std::max(most, int(grams.count(gram)));
    return most;
}

}  // namespace

TEST_CASE("search: rules hold in everything that is found") {
    holds(
        [](SearchOptions& o) {
            o.forbidden = {2, 5};
        },
        [](const Hypothesis& h) { return count_of(h.tokens, 2) + count_of(h.tokens, 5) == 0; });
    for (int n : {1, 2, 3})
        holds([&](SearchOptions& o) { o.no_repeat_ngram = n; },
              [&](const Hypothesis& h) { return most_repeated(h.tokens, n, -1) <= 1; });
    holds([](SearchOptions& o) { o.minimum = 5; }, [](const Hypothesis& h) { return h.tokens.size() >= 5; });
    holds([](SearchOptions& o) { o.maximum = 4; },
          [](const Hypothesis& h) { return int(h.tokens.size()) + h.ended <= 4; });
}

TEST_CASE("search: a begin that is an end may end the text; another one counts as written") {
    auto ended = [](int begin, const std::function<void(SearchOptions&)>& change) {
        auto from = toy::sources(60);
        for (SearchSource& s : from) s.begin = begin;
        SearchOptions options;
        options.maximum = 12;
        change(options);
        int count = 0;
        for (const auto& list : toy::run(V, from, options)) count += list.front().ended;
        return count;
    };
    const int end = toy::sources(1)[0].ends[0];
    CHECK(ended(end, [](SearchOptions& o) { o.no_repeat_ngram = 1; }) > 0);
    const int freely = ended(end, [](SearchOptions&) {});
    CHECK(freely > 0);
    // Tokens that were written once become less likely. The end was not written, so texts do not end later.
    CHECK(ended(end, [](SearchOptions& o) { o.repetition_penalty = 1.5; }) >= freely);
}

TEST_CASE("search: any of several ends") {
    auto from = toy::sources(40);
    for (SearchSource& source : from) source.ends = {4, 1};
    for (const SearchOptions& options : kinds([](SearchOptions&) {})) {
        int ended = 0;
        for (const auto& list : toy::run(V, from, options))
            for (const Hypothesis& h : list) {
                CHECK(count_of(h.tokens, 1) + count_of(h.tokens, 4) == 0);
                ended += h.ended;
            }
        CHECK(ended > 10);
    }
}

TEST_CASE("search: forbidden tokens leave what others score") {
    const auto from = toy::sources(20);
    SearchOptions options;
    options.maximum = 1;
    options.forbidden = {2, 3};
    const toy::Tables model(V, from);
    for (const SearchSource& source : from) {
        const Hypothesis h = toy::run(V, {source}, options)[0][0];
        const auto log_p = model.log_p(source.line, 1, 0);
        CHECK(std::abs(h.score - log_p[std::size_t(h.ended ? 1 : h.tokens[0])]) < 1e-6);
    }
}

TEST_CASE("search: a penalty makes what was written less likely") {
    const auto from = toy::sources(40);
    auto repeats = [&](double penalty) {
        int again = 0;
        SearchOptions options;
        options.repetition_penalty = penalty;
        options.samples = 20;
        for (const auto& list : toy::run(V, from, options, 4))
            for (const Hypothesis& h : list)
                for (std::size_t i = 0; i < h.tokens.size(); i++)
                    again += std::count(h.tokens.begin(), h.tokens.begin() + std::ptrdiff_t(i), h.tokens[i]) > 0;
        return again;
    };
    CHECK(repeats(3) < repeats(1) / 2);
}

// Token 2 is written twice. Its log p is l the first time and, with a penalty of 2, 2 l the second time.
TEST_CASE("search: a penalty lowers the score of what several beams write, not of what one writes") {
    toy::Fixed model({0, 0, 3});
    const double l = 3 - std::log(2 + std::exp(3.0));
    for (int beams : {1, 2}) {
        SearchOptions options;
        options.beams = beams;
        options.repetition_penalty = 2;
        options.maximum = 2;
        const Hypothesis found = search(model, toy::sources(1), options, 1)[0][0];
        CHECK(found.tokens == std::vector<int>{2, 2});
        CHECK(std::abs(found.score - (beams == 1 ? l + l : l + 2 * l) / 2) < 1e-6);
    }
}

TEST_CASE("search: where nothing is allowed a hypothesis stops as it is") {
    const auto from = toy::sources(10);
    for (const SearchOptions& options : kinds([](SearchOptions& o) {
             o.no_repeat_ngram = 1;  // 0 is the first token, 1 may only end a text, and 2 and 3 may occur once
             o.forbidden = {1, 4, 5, 6};
         }))
        for (const auto& list : toy::run(V, from, options))
            for (const Hypothesis& h : list) {
                CHECK_FALSE(h.ended);
                CHECK((h.tokens == std::vector<int>{2, 3} || h.tokens == std::vector<int>{3, 2}));
                CHECK(std::isfinite(h.score));
            }
    for (const SearchOptions& options : kinds([](SearchOptions& o) { o.forbidden = {0, 1, 2, 3, 4, 5, 6}; }))
        for (const auto& list : toy::run(V, from, options))
            for (const Hypothesis& h : list) CHECK((h.tokens.empty() && !h.ended && h.score == 0));
}
