// SPDX-License-Identifier: MIT
// Tests sampling: single draws against choose_token(), which defines them; draws against the exact distribution; and
// whole sequences.
#include <map>

#include "engine/base/random.h"
#include "models/writing/token_scores.h"
#include "tests/models/writing/choose_token.h"
#include "tests/models/writing/search_toy.h"

using namespace masquerade;

namespace {

std::vector<float> row_of(int V, std::uint64_t seed) {
    Sequence random(seed, "row");
    std::vector<float> row;
    for (int i = 0; i < V; i++) row.push_back(12 * random.uniform() - 6);
    return row;
}

}  // namespace

TEST_CASE("search: the best of a row, and its log sum exp") {
    TokenScores scores;
    for (int V : {1, 15, 16, 17, 63, 64, 65, 1000, 4097}) {
        CAPTURE(V);
        std::vector<float> row = row_of(V, std::uint64_t(V));
        for (int i = 0; i < V; i += 3)
            row[std::size_t(i)] = std::round(row[std::size_t(i)]);  // many equal numbers, and also -0
        scores.read(row.data(), V);
        double sum = 0;
        for (float x : row) sum += std::exp(double(x));
        CHECK(std::abs(scores.log_sum() - std::log(sum)) < 1e-6);
        for (int id : {V / 2, V - 1}) scores.forbid(id), row[std::size_t(id)] = -INFINITY;
        scores.set(0, 7), row[0] = 7;
        std::vector<int> order;
        for (int i = 0; i < V; i++)
            if (row[std::size_t(i)] > -INFINITY) order.push_back(i);
        std::stable_sort(order.begin(), order.end(),
                         [&](int a, int b) { return row[std::size_t(a)] > row[std::size_t(b)]; });
        for (std::size_t count : {1, 2, 7, 64, 5000}) {
            const std::vector<TokenScores::Token>& best = scores.best(int(count));
            REQUIRE(best.size() == std::min(count, order.size()));
            for (std::size_t i = 0; i < best.size(); i++) {
                CHECK(best[i].id == order[i]);
                CHECK(best[i].score == row[std::size_t(order[i])]);
            }
        }
    }
}

TEST_CASE("search: a draw from a row is choose_token's") {
    TokenScores scores;
    Sequence random(3, "draws");
    int rows = 0;
    for (int V : {1, 5, 64, 130, 3000})
        for (double temperature : {0.3, 1.0, 3.0, 50.0})
            for (int top_k : {0, 1, 3, 100})
                for (double top_p : {1.0, 0.0, 0.5, 0.95, 0.9999}) {
                    // Nothing is cut off: the two functions add up in different orders.
                    if (top_k >= V - 2 && top_p >= 1) continue;
                    const SearchOptions options = drawing(temperature, top_k, top_p);
                    const std::vector<float> row = row_of(V, std::uint64_t(rows++));
                    const std::vector<int> forbidden = {V / 3, V - 1};
                    for (int i = 0; i < 12; i++) {
                        scores.read(row.data(), V);
                        for (int id : forbidden) scores.forbid(id);
                        const double u = random.uniform_double();
                        const int token = scores.draw(options, u);
                        if (V == 1)
                            CHECK(token == -1);
                        else
                            CHECK(token == choose_token(row.data(), V, options, forbidden, u));
                    }
                }
}

TEST_CASE("search: equal tokens at the thresholds of top-k and top-p") {
    // Returns the tokens that are drawn for some u. Checks that choose_token() and TokenScores give the same.
    auto drawn = [](const std::vector<float>& row, const SearchOptions& options) {
        std::vector<int> defined, searched;
        TokenScores scores;
        for (double u = 0.01; u < 1; u += 0.02) {
            defined.push_back(choose_token(row.data(), int(row.size()), options, {}, u));
            scores.read(row.data(), int(row.size()));
            searched.push_back(scores.draw(options, u));
        }
        for (std::vector<int>* all : {&defined, &searched}) {
            std::sort(all->begin(), all->end());
            all->erase(std::unique(all->begin(), all->end()), all->end());
        }
        CHECK(defined == searched);
        return defined;
    };
    using Ids = std::vector<int>;
    const std::vector<float> equal(4, 1.5f);  // four shares of exactly 1
    CHECK(drawn(equal, drawing(1, 0, 1)) == Ids{0, 1, 2, 3});
    CHECK(drawn(equal, drawing(1, 2, 1)) == Ids{0, 1});
    CHECK(drawn(equal, drawing(1, 3, 1)) == Ids{0, 1, 2});
    // The sum reaches top_p exactly, so no further token is kept.
    CHECK(drawn(equal, drawing(1, 0, 0.5)) == Ids{0, 1});
    CHECK(drawn(equal, drawing(1, 0, 0.51)) == Ids{0, 1, 2});  // the token with which the sum exceeds top_p is kept
    CHECK(drawn(equal, drawing(1, 3, 2.0 / 3)) == Ids{0, 1});
    CHECK(drawn(equal, drawing(1, 3, 0.67)) == Ids{0, 1, 2});
    const std::vector<float> row = {0, std::log(4.0f), std::log(2.0f), 0};  // the shares are 1/4, 1, 1/2, 1/4
    CHECK(drawn(row, drawing(1, 0, 0.49)) == Ids{1});
    CHECK(drawn(row, drawing(1, 0, 0.74)) == Ids{1, 2});
    CHECK(drawn(row, drawing(2, 0, 0.49)) == Ids{1, 2});  // at temperature 2, the shares are their square roots
    CHECK(drawn(row, drawing(1, 3, 1)) == Ids{0, 1, 2});
}

TEST_CASE("search: a draw goes by seed, line, sample and step, each by itself") {
    const double draw = sampling_draw(1, 2, 3, 4);
    CHECK(sampling_draw(1, 2, 3, 4) == draw);
    CHECK(draw > 0);
    CHECK(draw < 1);
    CHECK(sampling_draw(5, 2, 3, 4) != draw);
    CHECK(sampling_draw(1 | 1ull << 40, 2, 3, 4) != draw);
    CHECK(sampling_draw(1, 5, 3, 4) != draw);
    CHECK(sampling_draw(1, 2, 5, 4) != draw);
    CHECK(sampling_draw(1, 2, 3, 5) != draw);
}

TEST_CASE("search: sampled sequences are as frequent as they are likely") {
    const int V = 7, samples = 40000;
    auto from = toy::sources(1, 11);
    const toy::Tables model(V, from);
    for (SearchOptions options : {drawing(1, 0, 1), drawing(0.7, 3, 1), drawing(1.5, 0, 0.8), drawing(3, 4, 0.9)}) {
        options.samples = samples;
        options.maximum = 3;
        options.forbidden = {3};
        // The exact distribution of sequences, computed from the definitions.
        std::map<std::vector<int>, double> expected, log_p;
        std::function<void(std::vector<int>, double, double)> grow = [&](std::vector<int> tokens, double p, double lp) {
            const std::size_t n = tokens.size();
            const auto l = model.log_p(11, n > 1 ? tokens[n - 2] : n == 1 ? 0 : 1, n > 0 ? tokens[n - 1] : 0);
            std::vector<std::pair<double, int>> shares;
            for (int c = 0; c < V; c++)
                if (c != 3) shares.push_back({std::exp(l[std::size_t(c)] / options.temperature), c});
            std::sort(shares.rbegin(), shares.rend());
            if (options.top_k > 0) shares.resize(std::min(shares.size(), std::size_t(options.top_k)));
            double sum = 0, reached = 0;
            for (auto& s : shares) sum += s.first;
            std::size_t kept = 0;
            while (kept < shares.size() && reached < options.top_p * sum) reached += shares[kept++].first;
            for (std::size_t i = 0; i < kept; i++) {
                const int c = shares[i].second;
                std::vector<int> longer = tokens;
                longer.push_back(c);
                const double q = p * shares[i].first / reached, total = lp + l[std::size_t(c)];
                if (c == 1 || longer.size() == 3)
                    expected[longer] = q, log_p[longer] = total;
                else
                    grow(longer, q, total);
            }
        };
        grow({}, 1, 0);
        std::map<std::vector<int>, int> seen;
        const auto found = toy::run(V, from, options, 5)[0];
        REQUIRE(found.size() == samples);
        double worst = 0;
        for (const Hypothesis& h : found) {
            std::vector<int> tokens = h.tokens;
            if (h.ended) tokens.push_back(1);
            REQUIRE(expected.count(tokens) == 1);
            seen[tokens]++;
            worst = std::max(worst, std::abs(h.score - log_p[tokens] / double(tokens.size())));
        }
        CHECK(worst < 1e-6);  // the score is the log p of the model
        double chi2 = 0;
        for (const auto& [tokens, p] : expected) {
            const double n = p * samples;
            chi2 += (seen[tokens] - n) * (seen[tokens] - n) / n;
        }
        // Chi-square has mean d and variance 2d. It must be below the mean plus five deviations, and not suspiciously
        // small. The seed is fixed.
        const double d = double(expected.size()) - 1;
        CAPTURE(chi2);
        CAPTURE(d);
        CHECK(d >= 3);
        CHECK(chi2 < d + 5 * std::sqrt(2 * d));
        CHECK(chi2 > d - 3 * std::sqrt(2 * d));
    }
}

TEST_CASE("search: a sample is the draws of (seed, line, sample, step), one after the other") {
    const int V = 7;
    const auto from = toy::sources(3, 5);
    const toy::Tables model(V, from);
    SearchOptions options;
    options.samples = 30;  // some texts end early; the draws of the others must not change
    options.temperature = 1.2;
    options.top_p = 0.9;
    options.maximum = 12;
    const auto found = toy::run(V, from, options, 9);
    for (std::size_t s = 0; s < from.size(); s++)
        for (std::uint32_t sample = 0; sample < 30; sample++) {
            std::vector<int> tokens;
            int a = 1, b = 0;
            for (std::uint32_t step = 0; step < 12 && b != 1; step++) {
                std::vector<float> row;
                for (int c = 0; c < V; c++) row.push_back(model.logit(from[s].line, a, b, c));
                a = b;
                b = choose_token(row.data(), V, options, {}, sampling_draw(9, from[s].line, sample, step));
                if (b != 1) tokens.push_back(b);
            }
            CHECK(found[s][sample].tokens == tokens);
            CHECK(found[s][sample].ended == (b == 1));
        }
}

TEST_CASE("search: the same line draws the same, another seed does not") {
    SearchOptions options;
    options.samples = 3;
    options.maximum = 30;
    const int V = 300;
    auto from = toy::sources(2);
    from[1].line = 0;  // the same line gives the same draws
    const auto three = toy::run(V, from, options, 9);
    CHECK(toy::same({three[0]}, {three[1]}));
    CHECK_FALSE(toy::same(three[0][0], three[0][1]));
    CHECK_FALSE(toy::same(toy::run(V, from, options, 10)[0][0], three[0][0]));
    options.samples = 1;
    CHECK(toy::same(toy::run(V, from, options, 9)[0][0], three[0][0]));
}
