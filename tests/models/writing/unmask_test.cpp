// SPDX-License-Identifier: MIT
// Tests writing by masked diffusion with a model that is a table: for each place and each canvas of three places, the
// probabilities of three tokens. The expected numbers come from a program that enumerates all orders of the places.
#include "models/writing/unmask.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "engine/base/error.h"
#include "models/writing/search.h"
#include "tests/models/writing/check_written.h"

using namespace masquerade;

namespace {

constexpr int hidden = MaskedCanvas::hidden, tokens_of_table = 4, special = 3;

// The logit of token v at place i. In the formula, a hidden place has the number 3. The places of a canvas with more
// than three places are taken three by three.
double logit(int i, int v, const Tokens& canvas) {
    const auto c = [&](int k) {
        const std::size_t at = std::size_t(i / 3 * 3 + k);
        return at >= canvas.size() || canvas[at] == hidden ? 3 : canvas[at];
    };
    return ((5 * (i % 3) + 3 * v + 7 * c(0) + 11 * c(1) + 13 * c(2) + v * (c(0) + 2 * c(1) + 3 * c(2))) % 17) / 8.0;
}

// The probabilities of the allowed tokens.
Numbers probabilities(int i, const Tokens& canvas, int tokens = 3) {
    Numbers p;
    for (int v = 0; v < tokens; v++) p.push_back(std::exp(logit(i, v, canvas)));
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& x : p) x /= sum;
    return p;
}

struct Table : PlaceModel {
    int vocabulary() const override { return tokens_of_table; }
    const float* logits(const std::vector<const MaskedCanvas*>& canvases) override {
        numbers.clear();
        seen.emplace_back();
        for (const MaskedCanvas* c : canvases) {
            seen.back().push_back(*c);
            for (int place : c->asked) {
                REQUIRE(c->tokens.at(std::size_t(place)) == hidden);
                for (int v = 0; v < 3; v++) numbers.push_back(float(logit(place, v, c->tokens)));
                numbers.push_back(9);  // the special token would be the most likely one
            }
        }
        return numbers.data();
    }
    std::vector<float> numbers;
    std::vector<std::vector<MaskedCanvas>> seen;  // the canvases of each call
};

// A model whose places have fixed probabilities of the tokens 0, 1, 2, whatever is visible.
struct Fixed : PlaceModel {
    explicit Fixed(std::vector<Numbers> each) : p(std::move(each)) {}
    int vocabulary() const override { return 3; }
    const float* logits(const std::vector<const MaskedCanvas*>& canvases) override {
        numbers.clear();
        for (const MaskedCanvas* c : canvases)
            for (int place : c->asked)
                for (double x : p.at(std::size_t(place))) numbers.push_back(float(std::log(x)));
        return numbers.data();
    }
    const std::vector<Numbers> p;
    std::vector<float> numbers;
};

SearchOptions drawing(UnmaskOptions how = {}) {
    SearchOptions o;
    o.samples = 1;
    o.forbidden = {special};
    o.unmask = std::move(how);
    return o;
}
SearchOptions greedy(UnmaskOptions how = {}) {
    SearchOptions o = drawing(std::move(how));
    o.samples = 0;
    return o;
}
SearchOptions by_threshold(SearchOptions o, double threshold) {
    o.canvas.threshold = threshold;
    return o;
}
UnmaskOptions ordered(const std::string& order) {
    UnmaskOptions o;
    o.order = order;
    return o;
}
UnmaskOptions in_steps(int steps, const std::string& order = "") {
    UnmaskOptions o = ordered(order);
    o.steps = steps;
    return o;
}
UnmaskOptions bounded(double bound) {
    UnmaskOptions o;
    o.entropy_bound = bound;
    return o;
}

MaskedCanvas empty_canvas(int places, std::uint32_t line = 0, int end = -1) {
    MaskedCanvas c;
    c.line = line;
    c.tokens = Tokens(std::size_t(places), int(hidden));
    c.end = end;
    return c;
}

Written write_one(const SearchOptions& o, MaskedCanvas start = empty_canvas(3), std::uint64_t seed = 1) {
    Table model;
    return unmask_canvases(model, {std::move(start)}, o, seed).at(0);
}

std::vector<Written> write_many(const SearchOptions& o, int count, int places = 3, int end = -1) {
    std::vector<MaskedCanvas> starts;
    for (int i = 0; i < count; i++) starts.push_back(empty_canvas(places, std::uint32_t(i), end));
    Table model;
    return unmask_canvases(model, starts, o, 5);
}

using Law = std::map<Tokens, double>;

// Adds the law of writing the places one by one in random order, from `canvas` on.
void one_by_one(const Tokens& canvas, double p, Law& law) {
    const auto open = std::count(canvas.begin(), canvas.end(), int(hidden));
    if (open == 0) law[canvas] += p;
    for (int i = 0; i < 3; i++) {
        if (canvas[std::size_t(i)] != hidden) continue;
        const Numbers of = probabilities(i, canvas);
        for (int v = 0; v < 3; v++) {
            Tokens next = canvas;
            next[std::size_t(i)] = v;
            one_by_one(next, p * of[std::size_t(v)] / double(open), law);
        }
    }
}

// Adds the law if place i is written in step step_of[i], from `step` on. The places of a step are independent.
void in_groups(const std::vector<int>& step_of, int step, int last, const Tokens& canvas, double p, Law& law) {
    if (step == last) {
        law[canvas] += p;
        return;
    }
    std::vector<Tokens> all = {canvas};
    Numbers ps = {p};
    for (int i = 0; i < 3; i++) {
        if (step_of[std::size_t(i)] != step) continue;
        const Numbers of = probabilities(i, canvas);
        std::vector<Tokens> more;
        Numbers p_of_more;
        for (std::size_t a = 0; a < all.size(); a++)
            for (int v = 0; v < 3; v++) {
                more.push_back(all[a]);
                more.back()[std::size_t(i)] = v;
                p_of_more.push_back(ps[a] * of[std::size_t(v)]);
            }
        all = more, ps = p_of_more;
    }
    for (std::size_t a = 0; a < all.size(); a++) in_groups(step_of, step + 1, last, all[a], ps[a], law);
}

Law any_order_law() {
    Law law;
    one_by_one(Tokens(3, int(hidden)), 1, law);
    return law;
}

// shares[j]: the probability that a place is written in step j.
Law law_of_steps(const Numbers& shares) {
    Law law;
    const int T = int(shares.size());
    for (int a = 0; a < T; a++)
        for (int b = 0; b < T; b++)
            for (int c = 0; c < T; c++)
                in_groups({a, b, c}, 0, T, Tokens(3, int(hidden)),
                          shares[std::size_t(a)] * shares[std::size_t(b)] * shares[std::size_t(c)], law);
    return law;
}

double variation(const Law& a, const Law& b) {
    double sum = 0;
    for (const auto& [x, p] : a) sum += std::abs(p - b.at(x)) / 2;
    return sum;
}

double chi_square(const std::vector<Written>& all, const Law& law) {
    std::map<Tokens, int> counts;
    for (const Written& w : all) counts[w.tokens]++;
    double sum = 0;
    for (const auto& [x, p] : law) {
        const double expected = p * double(all.size());
        sum += (counts[x] - expected) * (counts[x] - expected) / expected;
    }
    return sum;
}

// The 0.9999 quantile of the chi-square distribution with 26 degrees of freedom.
constexpr double quantile = 61.7;

}  // namespace

TEST_CASE("unmask: the laws of the table are those that the numbers below belong to") {
    const Law exact = any_order_law();
    CHECK(std::abs(exact.at({0, 1, 2}) - .031990308652) < 1e-12);
    CHECK(std::abs(exact.at({1, 0, 2}) - .098100869547) < 1e-12);
    const Law four = law_of_steps({.25, .25, .25, .25});
    CHECK(std::abs(four.at({0, 1, 2}) - .027120289871) < 1e-12);
    CHECK(std::abs(variation(exact, four) - .064536594958) < 1e-12);
    CHECK(std::abs(variation(exact, law_of_steps({1})) - .255041387800) < 1e-12);
    CHECK(std::abs(variation(exact, law_of_steps({.5, .5})) - .127550792793) < 1e-12);
    CHECK(std::abs(variation(exact, law_of_steps(Numbers(16, 1.0 / 16))) - .016680985711) < 1e-12);
}

TEST_CASE("unmask: one place a pass in random order draws from the law of the model, and steps draw from their own") {
    const int draws = 20000;
    const auto exact = write_many(drawing(), draws);
    CHECK(chi_square(exact, any_order_law()) < quantile);
    const Law four = law_of_steps({.25, .25, .25, .25});
    const auto in_four = write_many(drawing(in_steps(4)), draws);
    CHECK(chi_square(in_four, four) < quantile);
    CHECK(chi_square(in_four, any_order_law()) > 3 * quantile);
    CHECK(chi_square(exact, four) > 3 * quantile);
    UnmaskOptions cosine = in_steps(4);
    cosine.plan = "cosine";
    const Law curved = law_of_steps({.076120467489, .216772751325, .324423348821, .382683432365});
    CHECK(chi_square(write_many(drawing(cosine), draws), curved) < quantile);
    CHECK(chi_square(write_many(drawing(in_steps(1)), draws), law_of_steps({1})) < quantile);
}

TEST_CASE("unmask: a step that writes no place costs no pass") {
    const auto mean_passes = [](int steps, int places) {
        double sum = 0;
        for (const Written& w : write_many(drawing(in_steps(steps)), 4000, places)) sum += w.rounds / 4000.0;
        return sum;
    };
    for (int steps : {1, 2, 4, 16})
        for (int places : {3, 12})
            CHECK(std::abs(mean_passes(steps, places) - steps * (1 - std::pow(1 - 1.0 / steps, places))) < 0.05);
    // In another order, pass j writes floor(n j / T) - floor(n (j-1) / T) places.
    const Written w = write_one(greedy(in_steps(4, "confidence")), empty_canvas(10));
    std::map<int, int> of_pass;
    for (int pass : w.came) of_pass[pass]++;
    CHECK(of_pass == std::map<int, int>{{1, 2}, {2, 3}, {3, 2}, {4, 3}});
    CHECK(write_one(greedy(in_steps(100, "margin")), empty_canvas(10)).rounds == 10);
    // After two thirds of the steps, half of the places are visible by the plan; in double, a little less than half.
    UnmaskOptions cosine = in_steps(3, "confidence");
    cosine.plan = "cosine";
    REQUIRE(visible_after(cosine, 2, 8) < 4);
    const Written half = write_one(greedy(cosine), empty_canvas(8));
    CHECK(std::count(half.came.begin(), half.came.end(), 3) == 4);
}

TEST_CASE("unmask: the plans") {
    UnmaskOptions o = in_steps(4);
    CHECK(visible_after(o, 3) == 0.75);
    CHECK(visible_after(in_steps(100), 29, 100) == 29);
    o.plan = "cosine";
    double last = 0;
    for (double share : {.076120467489, .216772751325, .324423348821, .382683432365}) {
        static int step = 0;
        const double now = visible_after(o, ++step);
        CHECK(std::abs(now - last - share) < 1e-12);
        last = now;
    }
}

TEST_CASE("unmask: the most likely tokens, in the order of the places that are surest") {
    for (const std::string order : {"confidence", "margin", "entropy"}) {
        const Written w = write_one(greedy(ordered(order)));
        CHECK(w.tokens == Tokens{0, 0, 2});
        CHECK(w.came == std::vector<int>{3, 1, 2});
        CHECK(w.rounds == 3);
        CHECK(std::abs(w.score - std::log(.657218 * .740594 * .548918)) < 1e-5);
    }
    check_equal(write_one(greedy()), write_one(greedy(ordered("confidence"))));
    const auto check = [](const SearchOptions& o, const Tokens& tokens, int passes) {
        const Written w = write_one(o);
        CHECK(w.tokens == tokens);
        CHECK(w.rounds == passes);
    };
    check(by_threshold(greedy(), 0.6), {0, 0, 2}, 3);
    check(by_threshold(greedy(), 0.5), {2, 0, 2}, 1);
    check(greedy(bounded(0.5)), {0, 0, 2}, 3);
    check(greedy(bounded(2)), {2, 0, 2}, 1);
    check(greedy(bounded(1)), {2, 0, 0}, 2);  // places 0 and 2 are equally sure: 0 is written
    CHECK(write_one(greedy(bounded(1))).came == std::vector<int>{1, 1, 2});
    // The most likely text is 1 0 2: the order by confidence does not search for it.
    const Law law = any_order_law();
    CHECK(std::max_element(law.begin(), law.end(), [](auto& a, auto& b) { return a.second < b.second; })->first ==
          Tokens{1, 0, 2});
}

TEST_CASE("unmask: orders that differ") {
    Fixed model({{.5, .45, .05}, {.44, .28, .28}, {.46, .27, .27}});
    const auto came = [&](const std::string& order) {
        SearchOptions o;
        o.unmask = ordered(order);
        return unmask_canvases(model, {empty_canvas(3)}, o, 1).at(0).came;
    };
    CHECK(came("confidence") == std::vector<int>{1, 3, 2});
    CHECK(came("margin") == std::vector<int>{3, 2, 1});
    CHECK(came("entropy") == std::vector<int>{1, 3, 2});
}

TEST_CASE("unmask: of an end and a word behind it that one pass has chosen, the better one is written") {
    SearchOptions o = by_threshold({}, 0.5);
    for (const bool end_is_better : {false, true}) {
        Fixed model({{.1, .2, .7}, {end_is_better ? .6 : .8, end_is_better ? .2 : .1, end_is_better ? .2 : .1}});
        const Written w = unmask_canvases(model, {empty_canvas(2, 0, 2)}, o, 1).at(0);
        CHECK(w.tokens == (end_is_better ? Tokens{} : Tokens{1, 0}));
        CHECK(w.rounds == (end_is_better ? 1 : 2));
        CHECK(w.ended == end_is_better);
    }
}

TEST_CASE("unmask: ways of saying one place a pass") {
    for (std::uint32_t line = 0; line < 20; line++) {
        const Written one = write_one(greedy(ordered("entropy")), empty_canvas(12, line));
        CHECK(one.rounds == 12);
        check_equal(one, write_one(greedy(bounded(0)), empty_canvas(12, line)));
        check_equal(one, write_one(by_threshold(greedy(ordered("entropy")), 1.5), empty_canvas(12, line)));
        UnmaskOptions more = ordered("random");
        const Written random = write_one(drawing(more), empty_canvas(12, line));
        check_equal(random, write_one(drawing(), empty_canvas(12, line)));
        check_equal(random, write_one(by_threshold(drawing(), 1.5), empty_canvas(12, line)));
        more.per_pass = 5;
        CHECK(write_one(drawing(more), empty_canvas(12, line)).rounds == 3);
    }
}

TEST_CASE("unmask: with an end, the probabilities of all texts add up to 1") {
    // Token 2 ends a text. The probability of a way of writing is the product of the probabilities of its places and of
    // its tokens; the texts are the 15 strings of words with ends behind them.
    std::map<std::string, double> ways;
    std::map<Tokens, int> texts;
    for (std::uint32_t line = 0; line < 20000; line++) {
        Table model;
        const Written w = unmask_canvases(model, {empty_canvas(3, line, 2)}, drawing(), 1).at(0);
        std::string way;
        double p = std::exp(w.score);
        for (const auto& call : model.seen) {
            const MaskedCanvas& c = call.at(0);
            p /= double(std::count(c.tokens.begin(), c.tokens.end(), int(hidden)));
            for (int token : c.tokens) way += std::to_string(token) + ' ';
            way += "at " + std::to_string(c.asked.at(0)) + ", ";
            // Behind an end, everything is the end; before a word, nothing is.
            for (std::size_t i = 0; i + 1 < c.tokens.size(); i++)
                if (c.tokens[i] == 2) CHECK(c.tokens[i + 1] == 2);
        }
        for (int token : w.tokens) way += std::to_string(token) + ' ';
        ways[way] = p;
        texts[w.tokens]++;
        CHECK(w.ended == (w.tokens.size() < 3));
        CHECK(std::count(w.tokens.begin(), w.tokens.end(), 2) == 0);
    }
    CHECK(texts.size() == 15);
    double sum = 0;
    for (const auto& [way, p] : ways) sum += p;
    CHECK(std::abs(sum - 1) < 1e-5);
}

TEST_CASE("unmask: the end comes where it is allowed") {
    UnmaskOptions last;
    last.ends_last = true;
    last.order = "random";
    for (std::uint32_t line = 0; line < 300; line++) {
        MaskedCanvas start = empty_canvas(6, line, 2);
        start.minimum = 4;
        CHECK(write_one(drawing(), start).tokens.size() >= 4);
        for (int several : {0, 3, 6}) {  // in one pass, the end and words behind it can both be drawn
            UnmaskOptions o;
            o.per_pass = several;
            const Written w = write_one(drawing(o), empty_canvas(6, line, 2));
            CHECK(std::count(w.tokens.begin(), w.tokens.end(), 2) == 0);
            CHECK((w.ended ? w.tokens.size() < 6 : w.tokens.size() == 6));
        }
        Table model;
        const Written w = unmask_canvases(model, {empty_canvas(6, line, 2)}, drawing(last), 1).at(0);
        for (const auto& call : model.seen) CHECK(std::count(call[0].tokens.begin(), call[0].tokens.end(), 2) == 0);
        CHECK(w.rounds >= int(w.tokens.size()));
    }
    // A place behind which a word is given cannot be the end, and what is given behind an end is the end.
    MaskedCanvas start = empty_canvas(6, 0, 2);
    start.tokens[4] = 1;
    for (std::uint32_t line = 0; line < 50; line++) {
        start.line = line;
        CHECK(write_one(drawing(), start).tokens.size() >= 5);
    }
    start.tokens = {hidden, 2, hidden};
    for (std::uint32_t line = 0; line < 20; line++) {
        start.line = line;
        const Written w = write_one(drawing(), start);
        CHECK(w.tokens.size() <= 1);
        CHECK(w.ended == w.tokens.empty());  // an end that was given is no end of its own
    }
}

TEST_CASE("unmask: given tokens stay, and what nobody may write is never written") {
    UnmaskOptions again = in_steps(8);
    again.remask = 1;
    for (const UnmaskOptions& how : {UnmaskOptions(), again}) {
        for (std::uint32_t line = 0; line < 100; line++) {
            MaskedCanvas start = empty_canvas(9, line);
            start.tokens[1] = special, start.tokens[4] = 0, start.tokens[8] = 1;
            const Written w = write_one(drawing(how), start);
            CHECK((w.tokens[1] == special && w.tokens[4] == 0 && w.tokens[8] == 1));
            CHECK(std::count(w.tokens.begin(), w.tokens.end(), int(special)) == 1);
            CHECK(std::count(w.came.begin(), w.came.end(), 0) == 3);
        }
    }
    MaskedCanvas all = empty_canvas(3);
    all.tokens = {0, special, 1};
    const Written same = write_one(drawing(), all);
    CHECK(same.tokens == all.tokens);
    CHECK(same.rounds == 0);
    CHECK(same.score == 0);
    CHECK(write_one(drawing(), empty_canvas(0)).tokens.empty());
    CHECK(write_one(greedy(), empty_canvas(1)).rounds == 1);
    SearchOptions none = greedy();
    none.forbidden = {0, 1, 2, 3};
    CHECK_THROWS_WITH_AS(write_one(none), doctest::Contains("no token is left that may be written"), BadUsage);
}

TEST_CASE("unmask: hiding again keeps the share of the visible places") {
    for (double share : {0.4, 1.0}) {
        for (const char* plan : {"linear", "cosine"}) {
            UnmaskOptions o = in_steps(4, "random");
            o.plan = plan;
            const Numbers without = [&] {
                Numbers visible;
                for (int j = 0; j < 4; j++) visible.push_back(visible_after(o, j));
                return visible;
            }();
            o.remask = share;
            Table model;
            std::vector<MaskedCanvas> starts;
            for (std::uint32_t line = 0; line < 20; line++) starts.push_back(empty_canvas(300, line));
            int hidden_again = 0;
            const auto all = unmask_canvases(model, starts, drawing(o), 3);
            REQUIRE(model.seen.size() == 4);
            for (std::size_t j = 0; j < 4; j++) {
                double visible = 0;
                for (std::size_t i = 0; i < starts.size(); i++) {
                    const Tokens& now = model.seen[j].at(i).tokens;
                    visible += 1 - double(std::count(now.begin(), now.end(), int(hidden))) / 300;
                    for (std::size_t place = 0; j > 0 && place < 300; place++)
                        hidden_again += model.seen[j - 1][i].tokens[place] != hidden && now[place] == hidden;
                }
                CHECK(std::abs(visible / 20 - without[j]) < 0.02);
            }
            CHECK(hidden_again > 500);
            for (const Written& w : all) CHECK(std::count(w.tokens.begin(), w.tokens.end(), int(hidden)) == 0);
        }
    }
    // From 1/2 to 3/4 of the places, the largest probability of hiding a place again is 1/2: 2/5 of it is 1/5.
    UnmaskOptions o = in_steps(4, "confidence");
    o.remask = 0.4;
    Table model;
    std::vector<MaskedCanvas> starts;
    for (std::uint32_t line = 0; line < 50; line++) starts.push_back(empty_canvas(120, line));
    unmask_canvases(model, starts, drawing(o), 3);
    double again = 0;
    for (std::size_t i = 0; i < starts.size(); i++)
        for (std::size_t place = 0; place < 120; place++)
            again += model.seen[2][i].tokens[place] != hidden && model.seen[3][i].tokens[place] == hidden;
    CHECK(std::abs(again / (50 * 60) - 0.2) < 0.03);
}

TEST_CASE("unmask: noise in the order, and blocks") {
    UnmaskOptions noisy = ordered("confidence");
    noisy.choice_temperature = 100;
    std::map<int, int> first;
    for (std::uint32_t line = 0; line < 3000; line++) {
        const Written w = write_one(greedy(noisy), empty_canvas(3, line));
        first[int(std::find(w.came.begin(), w.came.end(), 1) - w.came.begin())]++;
    }
    for (int place = 0; place < 3; place++) CHECK(std::abs(first[place] - 1000) < 150);
    // The Gumbel noise draws the first place with probabilities proportional to the largest p of each place.
    noisy.choice_temperature = 1;
    first.clear();
    Numbers best;
    for (int i = 0; i < 3; i++) {
        const Numbers p = probabilities(i, Tokens(3, int(hidden)));
        best.push_back(*std::max_element(p.begin(), p.end()));
    }
    for (std::uint32_t line = 0; line < 9000; line++) {
        const Written w = write_one(greedy(noisy), empty_canvas(3, line));
        first[int(std::find(w.came.begin(), w.came.end(), 1) - w.came.begin())]++;
    }
    for (int i = 0; i < 3; i++)
        CHECK(std::abs(first[i] / 9000.0 - best[std::size_t(i)] / (best[0] + best[1] + best[2])) < 0.02);

    // The noise becomes weaker: after one of three places, it has 2/3 of its size.
    Fixed model({{.5, .25, .25}, {.9, .05, .05}, {.4, .3, .3}});
    int others = 0, second = 0;
    for (std::uint32_t line = 0; line < 9000; line++) {
        SearchOptions o;
        o.unmask = noisy;
        const Written w = unmask_canvases(model, {empty_canvas(3, line)}, o, 1).at(0);
        others += w.came[0] == 1, second += w.came[0] == 1 && w.came[1] == 2;
    }
    const double a = std::pow(.9, 1.5), b = std::pow(.4, 1.5);
    CHECK(std::abs(double(second) / others - a / (a + b)) < 0.03);

    UnmaskOptions blocks;
    blocks.block = 4;
    const Written w = write_one(drawing(blocks), empty_canvas(10));
    for (int i = 0; i < 10; i++) CHECK((w.came[std::size_t(i)] - 1) / 4 == i / 4);
}

TEST_CASE("unmask: a batch writes what each writes alone, and each sample and seed is another") {
    UnmaskOptions again = in_steps(5);
    again.remask = 0.5;
    UnmaskOptions noisy = ordered("margin");
    noisy.choice_temperature = 1;
    const std::vector<SearchOptions> all = {
        drawing(),           greedy(),      drawing(in_steps(3)),       drawing(again),
        drawing(bounded(1)), greedy(noisy), by_threshold(greedy(), 0.6)};
    for (const SearchOptions& o : all) {
        std::vector<MaskedCanvas> starts;
        for (int i = 0; i < 12; i++) {
            starts.push_back(empty_canvas(i, std::uint32_t(i % 7), i % 2 ? 2 : -1));
            starts.back().sample = std::uint32_t(i / 7);
        }
        Table model;
        const std::vector<Written> together = unmask_canvases(model, starts, o, 9);
        for (std::size_t i = 0; i < starts.size(); i++) check_equal(together[i], write_one(o, starts[i], 9));
    }
    std::map<Tokens, int> different;
    MaskedCanvas start = empty_canvas(12);
    for (std::uint32_t n = 0; n < 5; n++) {
        start.sample = n, start.line = 0;
        different[write_one(drawing(), start).tokens]++;
        start.sample = 0, start.line = n + 1;
        different[write_one(drawing(), start).tokens]++;
        different[write_one(drawing(), empty_canvas(12), n + 2).tokens]++;
    }
    CHECK(different.size() == 15);
}

TEST_CASE("unmask: the passes are drawn, hidden places as _") {
    Written w = write_one(greedy());
    CHECK(draw_rounds(w, {"a", "b", "c"}, "_") == "  1  _ [b] _\n  2  _ b [c]\n  3  [a] b c\n");
    MaskedCanvas start = empty_canvas(3);
    start.tokens[0] = 1;
    w = write_one(by_threshold(greedy(), 0.1), start);
    CHECK(draw_rounds(w, {"a", "b", "c"}, "_") == "  0  a _ _\n  1  a [b] [c]\n");
}

TEST_CASE("unmask: a text in random orders has the probability that the table gives in each of them") {
    // -log p of the tokens in an order, by the table with all its tokens.
    const auto cost = [](const Tokens& truth, const std::vector<int>& order, int end) {
        Tokens canvas(truth.size(), int(hidden));
        double sum = 0;
        for (int place : order) {
            const bool known =
                std::any_of(canvas.begin(), canvas.begin() + place, [&](int t) { return end >= 0 && t == end; });
            if (known) continue;
            Numbers z;
            for (int v = 0; v < 3; v++) z.push_back(logit(place, v, canvas));
            z.push_back(9);
            double all = 0;
            for (double x : z) all += std::exp(x);
            sum += std::log(all) - z[std::size_t(truth[std::size_t(place)])];
            canvas[std::size_t(place)] = truth[std::size_t(place)];
            if (truth[std::size_t(place)] == end) std::fill(canvas.begin() + place, canvas.end(), end);
        }
        return sum;
    };
    constexpr int samples = 6000;
    for (const auto& [truth, end] : {std::pair(Tokens{0, 1, 2}, -1), {{0, 1, 2}, 2}, {{0, 2, 2}, 2}, {{2, 2, 2}, 2}})
        for (int block : {0, 1, 2, 3}) {
            CAPTURE(block);
            std::map<std::string, double> expected;  // the numbers of -log p, and how often they come
            std::vector<int> order = {0, 1, 2};
            double orders = 0;
            do {
                bool allowed = true;
                for (std::size_t i = 1; i < 3 && block > 0; i++) allowed &= order[i - 1] / block <= order[i] / block;
                if (!allowed) continue;
                expected[text(std::round(1e4 * cost(truth, order, end)))]++, orders++;
            } while (std::next_permutation(order.begin(), order.end()));
            std::vector<MaskedCanvas> starts;
            for (std::uint32_t sample = 0; sample < samples; sample++) {
                starts.push_back(empty_canvas(3, 5, end));
                starts.back().sample = sample;
            }
            Table model;
            std::map<std::string, double> found;
            for (double x : log_p_in_random_order(model, starts, std::vector<Tokens>(samples, truth), block, 3))
                found[text(std::round(-1e4 * x))]++;
            REQUIRE(found.size() == expected.size());
            for (const auto& [key, times] : expected)
                CHECK(std::abs(found[key] - times / orders * samples) < 4.5 * std::sqrt(double(samples)) / 2);
        }
    // Places that are visible at the start are not predicted.
    MaskedCanvas given = empty_canvas(3);
    given.tokens = {0, int(hidden), 2};
    Table model;
    const double one = log_p_in_random_order(model, {given}, {{0, 1, 2}}, 0, 3).at(0);
    const double all = std::exp(logit(1, 0, given.tokens)) + std::exp(logit(1, 1, given.tokens)) +
                       std::exp(logit(1, 2, given.tokens)) + std::exp(9);
    CHECK(std::abs(one - (logit(1, 1, given.tokens) - std::log(all))) < 1e-6);
}

TEST_CASE("unmask: options that contradict each other are refused") {
    const auto refuses = [](const SearchOptions& o, const char* what) {
        CHECK_THROWS_WITH_AS(write_one(o), doctest::Contains(what), BadUsage);
    };
    UnmaskOptions o = in_steps(3);
    o.per_pass = 2;
    refuses(greedy(o), "say how many places a pass writes");
    refuses(by_threshold(greedy(in_steps(3)), 0.5), "say how many places a pass writes");
    o = {};
    o.remask = 0.5;
    refuses(greedy(o), "--remask hides places again between --steps");
    o = {};
    o.plan = "cosine";
    refuses(greedy(o), "--plan says");
    o = in_steps(3);
    o.block = 2;
    refuses(greedy(o), "leave out one");
    o = {};
    o.choice_temperature = 1;
    refuses(drawing(o), "for an order that is not random");
    SearchOptions beams = greedy();
    beams.beams = 4;
    refuses(beams, "--beam");
    CHECK_THROWS_WITH_AS(write_one(greedy(ordered("none"))), doctest::Contains("expected a known order"), Error);
    CHECK(changed(UnmaskOptions()) == nullptr);
    CHECK(changed(in_steps(1)) == std::string("--steps"));
}
