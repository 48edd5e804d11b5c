// SPDX-License-Identifier: MIT
// Tests the questions to slots: the weights of the orders, the drawn canvases, every finalization, repeated words, and
// the ends of slots.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "models/tasks/insertion_objective.h"
#include "tests/models/runs/small_pairs.h"

using namespace masquerade;
using namespace masquerade::small_pairs;

namespace {

ObjectiveOptions inserting() {
    ObjectiveOptions o = options();
    o.insertion.begin = 2;
    o.insertion.end = 3;
    return o;
}

Sentence pair(const std::vector<int>& target, int name = 0) {
    Sentence s{{2, 30, 31, 3}, name, target};
    s.target.push_back(3);
    return s;
}

const Objective& find(const char* name) { return find_objective(name, insertion_objectives()); }

// Returns the shares of all words for every slot of a document of the batch.
using Shares = std::vector<std::map<int, double>>;
Shares shares_of(const Batch& b, int document = 0) {
    Shares all;
    for (int m = b.labels.begin[std::size_t(document)]; m < b.labels.begin[std::size_t(document) + 1]; m++) {
        all.emplace_back();
        const Choices& c = b.labels.choices;
        for (int j = c.begin[std::size_t(m)]; j < c.begin[std::size_t(m) + 1]; j++) {
            // A word that is missing several times has one summed share.
            CHECK(all.back().count(c.tokens[std::size_t(j)]) == 0);
            all.back()[c.tokens[std::size_t(j)]] = c.shares[std::size_t(j)];
        }
    }
    return all;
}
double sum(const Shares& shares) {
    double total = 0;
    for (const auto& slot : shares)
        for (const auto& [word, share] : slot) total += share;
    return total;
}

}  // namespace

// The golden values were computed by another program from equations 10 and 11.
TEST_CASE("insertion: the weights of a binary tree, of uniform and of numbered orders") {
    const std::map<double, std::map<int, std::vector<double>>> golden = {
        {0.5,
         {{2, {.5, .5}},
          {3, {.106507, .786986, .106507}},
          {4, {.059601, .440399, .440399, .059601}},
          {5, {.01401, .103523, .764934, .103523, .01401}}}},
        {1,
         {{3, {.211942, .576117, .211942}},
          {4, {.134471, .365529, .365529, .134471}},
          {5, {.067451, .18335, .498398, .18335, .067451}}}},
        {2,
         {{3, {.274069, .451863, .274069}},
          {4, {.18877, .31123, .31123, .18877}},
          {5, {.124755, .205686, .339119, .205686, .124755}}}}};
    InsertionRule rule;
    for (const auto& [tau, lengths] : golden)
        for (const auto& [length, expected] : lengths) {
            rule.tau = tau;
            const std::vector<double> found = order_weights(std::vector<int>(std::size_t(length), 9), rule);
            REQUIRE(found.size() == expected.size());
            for (std::size_t u = 0; u < found.size(); u++)
                CHECK(found[u] == doctest::Approx(expected[u]).epsilon(2e-5));
        }
    for (int length : {1, 2, 48, 49, 50, 301})
        for (double tau : {1e-3, 0.7, 1e9}) {
            rule.tau = tau;
            const std::vector<double> w = order_weights(std::vector<int>(std::size_t(length), 9), rule);
            CHECK(std::accumulate(w.begin(), w.end(), 0.0) == doctest::Approx(1).epsilon(1e-13));
            for (std::size_t u = 0; u < w.size(); u++)
                CHECK(w[u] == doctest::Approx(w[w.size() - 1 - u]).epsilon(1e-13));
            if (tau == 1e-3) CHECK(w[std::size_t(length) / 2] == doctest::Approx(length % 2 ? 1 : 0.5));
            if (tau == 1e9) CHECK(w[0] == doctest::Approx(1.0 / length).epsilon(1e-6));
        }
    rule.middle = false;
    rule.tau = 1;
    CHECK(order_weights({7, 8, 9, 10}, rule) == std::vector<double>(4, 0.25));
    rule.scores = std::make_shared<const std::vector<double>>(std::vector<double>{5, 3, 3, -1});
    const std::vector<double> w = order_weights({0, 1, 2, 3}, rule);  // the distances are 3, 1, 1, 0
    const double all = std::exp(-3) + 2 * std::exp(-1) + 1;
    CHECK(w[0] == doctest::Approx(std::exp(-3) / all).epsilon(1e-14));
    CHECK(w[1] == doctest::Approx(std::exp(-1) / all).epsilon(1e-14));
    CHECK(w[2] == w[1]);
    CHECK(w[3] == doctest::Approx(1 / all).epsilon(1e-14));
}

// k is uniform from 0 to n, both included, and all subsets of k words are equally likely.
TEST_CASE("insertion: canvases are drawn as the paper draws them (chi-square)") {
    const ObjectiveOptions o = inserting();
    constexpr int n = 4, draws = 20000;
    std::map<std::vector<int>, int> seen;
    const Sentence s = pair({10, 11, 12, 13});
    for (std::uint32_t step = 0; step < draws; step++) {
        const Batch b = find("insertion").batch({&s}, step, o);
        seen[{b.rows.ids.begin() + 1, b.rows.ids.end() - 1}]++;
    }
    const double ways[] = {1, 4, 6, 4, 1};
    double chi = 0;
    for (const auto& [canvas, count] : seen) {
        const double expected = draws / double(n + 1) / ways[canvas.size()];
        chi += (count - expected) * (count - expected) / expected;
    }
    CHECK(seen.size() == 16);
    CHECK(chi < 37.7);  // limit of chi-square with 15 degrees of freedom for p = 0.001
}

TEST_CASE("insertion: slots, ends and repeated words of every finalization") {
    ObjectiveOptions o = inserting();
    const Sentence s = pair({10, 11, 10, 10, 12}), none = pair({}), one = pair({10});
    for (bool sequence : {false, true})
        for (double end_weight : {1.0, 0.25})
            for (std::uint32_t step = 0; step < 60; step++) {
                o.insertion.sequence = sequence;
                o.insertion.end_weight = end_weight;
                for (const Sentence* text : {&s, &none, &one}) {
                    const Batch b = find("insertion").batch({text}, step, o);
                    const int k = b.rows.count() - 2, n = int(text->target.size()) - 1;
                    CHECK(b.rows.ids.front() == 2);
                    CHECK(b.rows.ids.back() == 3);
                    const Shares shares = shares_of(b);
                    REQUIRE(int(shares.size()) == k + 1);
                    CHECK(sum(shares) == doctest::Approx(1).epsilon(1e-13));
                    std::multiset<int> missing(text->target.begin(), text->target.end() - 1);
                    for (int i = 1; i <= k; i++) missing.erase(missing.find(b.rows.ids[std::size_t(i)]));
                    std::set<int> asked;
                    double ends = 0, words = 0;
                    for (const auto& slot : shares) {
                        const bool ended = slot.count(3) > 0;
                        CHECK((!ended || slot.size() == 1));
                        CHECK((!ended || !sequence || k == n));
                        CHECK((!slot.empty() || sequence));
                        for (const auto& [word, share] : slot) {
                            if (!ended) asked.insert(word);
                            (ended ? ends : words) += share;
                        }
                    }
                    CHECK(asked == std::set<int>(missing.begin(), missing.end()));
                    // A slot that ends has the weight end_weight, relative to a slot that lacks words.
                    for (const auto& slot : shares) {
                        double own = 0;
                        for (const auto& [word, share] : slot) own += share;
                        if (ends > 0 && words > 0 && own > 0) {
                            const double lacking =
                                words / double(std::count_if(shares.begin(), shares.end(),
                                                             [](const auto& x) { return x.count(3) == 0; }));
                            CHECK(own ==
                                  doctest::Approx(slot.count(3) ? end_weight * lacking : lacking).epsilon(1e-12));
                        }
                    }
                    if (k == n) CHECK(ends == doctest::Approx(1));
                }
            }
}

TEST_CASE("insertion: a word twice in a slot has both shares; left to right asks for the next word alone") {
    ObjectiveOptions o = inserting();
    const Sentence s = pair({10, 11, 10});
    bool empty = false;
    for (std::uint32_t step = 0; step < 40; step++) {
        o.insertion.left_to_right = false;
        Batch b = find("insertion").batch({&s}, step, o);
        if (b.rows.count() == 2) {
            const Shares shares = shares_of(b);
            CHECK(shares[0].at(10) == doctest::Approx(2 * .211942).epsilon(1e-5));
            CHECK(shares[0].at(11) == doctest::Approx(.576117).epsilon(1e-5));
            empty = true;
        }
        o.insertion.left_to_right = true;
        b = find("insertion").batch({&s}, step, o);
        const std::size_t k = std::size_t(b.rows.count()) - 2;
        for (std::size_t i = 0; i < k; i++) CHECK(b.rows.ids[i + 1] == s.target[i]);
        const Shares shares = shares_of(b);
        for (std::size_t l = 0; l < k; l++) CHECK(shares[l].empty());
        CHECK(shares[k] == std::map<int, double>{{s.target[k], 1.0}});
    }
    CHECK(empty);
}

TEST_CASE("insertion: several canvases share a source, and are drawn apart") {
    ObjectiveOptions o = inserting();
    o.canvases = 3;
    const std::vector<Sentence> text = pairs(4, 8);
    const Batch b = find("insertion").batch(pointers_to(text), 5, o, 32);
    int rows = 0;
    for (const Sentence& s : text) rows += int(s.ids.size());
    CHECK(b.documents == 12);
    CHECK(b.labels.begin.size() == 13);
    REQUIRE(b.shared.size() >= 4);
    int real = 0;
    for (std::size_t d = 0; d < 4; d++) {
        CHECK(b.shared[d].source == int(text[d].ids.size()));
        real += b.shared[d].source;
        CHECK(b.shared[d].target == b.parts[3 * d].target + b.parts[3 * d + 1].target + b.parts[3 * d + 2].target);
    }
    CHECK(real == rows);
    std::set<int> names(b.rows.document.begin(), b.rows.document.end());
    CHECK(names.size() >= 12);  // each canvas has its own dropout
    o.canvases = 1;
    const Batch first = find("insertion").batch({&text[2]}, 5, o);
    CHECK(shares_of(first) == shares_of(b, 6));  // if only one canvas is drawn, it is the first one
}

TEST_CASE("insertion: kermit asks in source and target, by the words that are missing") {
    const ObjectiveOptions o = inserting();
    const Sentence s = pair({10, 11, 12});
    bool left = false, right = false, both = false;
    for (std::uint32_t step = 0; step < 200; step++) {
        const Batch b = find("kermit").batch({&s}, step, o);
        const Shares shares = shares_of(b);
        CHECK(int(shares.size()) == b.rows.count() - 1);
        CHECK(sum(shares) == doctest::Approx(1).epsilon(1e-13));
        std::set<int> asked;
        for (const auto& slot : shares)
            for (const auto& [word, share] : slot)
                if (word != 3) asked.insert(word);
        const bool in_source = asked.count(30) + asked.count(31) > 0,
                   in_target = asked.count(10) + asked.count(11) + asked.count(12) > 0;
        left |= in_source && !in_target, right |= in_target && !in_source, both |= in_source && in_target;
        std::multiset<int> there(b.rows.ids.begin(), b.rows.ids.end());
        for (int word : {30, 31, 10, 11, 12}) CHECK(there.count(word) + asked.count(word) == 1);
    }
    CHECK(left);
    CHECK(right);
    CHECK(both);
}
