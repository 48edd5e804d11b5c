// SPDX-License-Identifier: MIT
// Tests writing by insertion with models that follow a script: the number of rounds, what is inserted where, and when
// writing ends.
#include "models/writing/canvas.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "engine/base/error.h"
#include "tests/models/writing/check_written.h"

using namespace masquerade;

namespace {

// A model that knows the target 1, 2 ... n of each source, with n = lengths[source]. A slot offers the middle one of
// the words that it lacks, or its end if it lacks none.
struct Middle : SlotModel {
    explicit Middle(std::vector<int> n) : lengths(std::move(n)) {}
    std::vector<std::vector<SlotScore>> score(const std::vector<const Canvas*>& canvases) override {
        std::vector<std::vector<SlotScore>> all;
        sources.emplace_back();
        for (const Canvas* c : canvases) {
            sources.back().push_back(c->source);
            std::vector<int> marks = {0};
            marks.insert(marks.end(), c->tokens.begin(), c->tokens.end());
            marks.push_back(lengths[std::size_t(c->source)] + 1);
            all.emplace_back();
            for (std::size_t l = 0; l + 1 < marks.size(); l++) {
                const int lacks = marks[l + 1] - marks[l] - 1, token = marks[l] + 1 + (lacks - upper) / 2;
                all.back().push_back({lacks > 0 ? token : 999, std::log(lacks > 0 ? 0.9 : 0.1),
                                      std::log(lacks > 0 ? 0.1 : 0.9), std::log(1.0 / double(marks.size() - 1))});
            }
        }
        return all;
    }
    std::vector<int> lengths;
    int upper = 1;                          // 1: if there are two middle words, the first one
    std::vector<std::vector<int>> sources;  // the sources in each call
};

// A model with given scores for each length of the canvas. For other lengths, all slots end.
struct Fixed : SlotModel {
    explicit Fixed(std::vector<std::vector<SlotScore>> scores) : by_length(std::move(scores)) {}
    std::vector<std::vector<SlotScore>> score(const std::vector<const Canvas*>& canvases) override {
        std::vector<std::vector<SlotScore>> all;
        for (const Canvas* c : canvases)
            all.push_back(c->tokens.size() < by_length.size()
                              ? by_length[c->tokens.size()]
                              : std::vector<SlotScore>(c->tokens.size() + 1, {0, -5, -0.01, -1}));
        return all;
    }
    std::vector<std::vector<SlotScore>> by_length;
};

std::vector<int> counted(int n) {
    std::vector<int> all;
    for (int i = 1; i <= n; i++) all.push_back(i);
    return all;
}

CanvasOptions parallel(double threshold = -1) {
    CanvasOptions o;
    o.parallel = true;
    o.threshold = threshold;
    o.longest = 1000;
    return o;
}

Written write_one(SlotModel& model, const CanvasOptions& o, Canvas start = {}) {
    return write_canvases(model, {start}, o).at(0);
}

}  // namespace

TEST_CASE(
    "canvas: insertion in the middle takes floor(log2 n) + 1 rounds, one by one takes n, and both one pass more") {
    for (int n = 0; n <= 300; n++) {
        INFO(n);
        for (int upper : {0, 1}) {
            Middle model({n});
            model.upper = upper;
            const Written w = write_one(model, parallel());
            CHECK(w.tokens == counted(n));
            CHECK(w.ended);
            CHECK(w.rounds == (n == 0 ? 0 : int(std::floor(std::log2(n))) + 1));
            CHECK(w.rounds == fewest_rounds(n));
            CHECK(model.sources.size() == std::size_t(w.passes()));
            CHECK(std::abs(w.score - n * std::log(0.9)) < 1e-9);
            if (n > 0) CHECK(w.came[std::size_t((n - upper) / 2)] == 1);
        }
        if (n > 40) continue;
        Middle model({n}), same({n});
        CanvasOptions o;
        const Written w = write_one(model, o);
        CHECK(w.tokens == counted(n));
        CHECK(w.ended);
        CHECK(w.rounds == n);
        CHECK(model.sources.size() == std::size_t(n + 1));
        double score = 0;  // in round i, one of i slots is chosen
        for (int i = 1; i <= n; i++) score += std::log(0.9 / i);
        CHECK(std::abs(w.score - score) < 1e-9);
        // Inserts one word per round, like serial writing; only the score is another.
        const Written semi = write_one(same, parallel(1.5));
        CHECK(semi.came == w.came);
        CHECK(semi.rounds == n);
    }
}

TEST_CASE("canvas: a batch writes what each writes alone, and the model never sees a canvas that is done") {
    const std::vector<int> lengths = {5, 0, 300, 1, 17, 16, 0};
    for (bool at_once : {true, false}) {
        CanvasOptions o = parallel();
        o.parallel = at_once;
        Middle together(lengths);
        std::vector<Canvas> starts;
        for (int i = 0; i < int(lengths.size()); i++) starts.push_back({i, {}});
        const std::vector<Written> all = write_canvases(together, starts, o);
        for (int i = 0; i < int(lengths.size()); i++) {
            Middle alone(lengths);
            check_equal(all[std::size_t(i)], write_one(alone, o, {i, {}}));
            for (std::size_t call = 0; call < together.sources.size(); call++)
                CHECK(std::count(together.sources[call].begin(), together.sources[call].end(), i) ==
                      (int(call) < all[std::size_t(i)].passes()));
        }
    }
    Middle none({});
    CHECK(write_canvases(none, {}, {}).empty());
    CHECK(none.sources.empty());
}

TEST_CASE("canvas: serial insertion takes the best slot that does not end; of equals the lowest") {
    // Slot 1 has the best log p(c,l), but it ends. Slots 0 and 2 are equal, so slot 0 is chosen.
    const std::vector<SlotScore> two = {{7, -1, -2, -2}, {8, -0.9, -0.5, -0.1}, {9, -2, -3, -1}};
    Fixed model({{{5, -1, -2, 0}}, {{4, -3, -2, -1}, {6, -1, -2, -1}}, two});
    const Written w = write_one(model, {});
    CHECK(w.tokens == std::vector<int>{7, 5, 6});
    CHECK(w.came == std::vector<int>{3, 1, 2});
    CHECK(w.score == -1 - 2 - 3);
    // In parallel writing, every slot that does not end inserts, whatever its p(l): here slots 0 and 2.
    Fixed again({{{5, -1, -2, 0}}, {{4, -3, -2, -1}, {6, -1, -2, -1}}, two});
    CHECK(write_one(again, parallel()).tokens == std::vector<int>{7, 5, 6, 9});
}

TEST_CASE("canvas: the end penalty moves the end by exactly its size") {
    for (double beta : {-1.0, 0.0, 0.75, 1.0, 2.0})
        for (double step : {-0.25, 0.0, 0.25}) {
            INFO(beta, " ", step);
            CanvasOptions o;
            o.end_penalty = beta;
            for (Finalization f : {Finalization::slot, Finalization::sequence}) {
                o.finalization = f;
                Fixed model({{{5, -3, -3 + beta + step, -0.5}}});
                // If the end is as good as the token, the slot ends.
                CHECK(write_one(model, o).tokens.size() == (step < 0 ? 1 : 0));
            }
        }
}

TEST_CASE("canvas: sequence finalization chooses among tokens and ends of all slots") {
    CanvasOptions o;
    o.finalization = Finalization::sequence;
    // Slot 0 alone would end, but the token of slot 1 is the best of all.
    Fixed goes_on({{{5, -1, -1.5, 0}}, {{6, -1, -0.5, -4}, {7, -0.9, -1.5, -0.1}}});
    CHECK(write_one(goes_on, o).tokens == std::vector<int>{5, 7});
    // The end of slot 0 is better than the token of slot 1. Slot finalization would insert the token.
    Fixed ends({{{5, -1, -1.5, 0}}, {{6, -3, -0.5, -0.1}, {7, -0.9, -1.5, -0.1}}});
    CHECK(write_one(ends, o).tokens == std::vector<int>{5});
    CHECK(write_one(ends, {}).tokens == std::vector<int>{5, 7});
    // The end of a closed slot also ends the writing.
    CHECK(write_one(ends, o, {0, {5}, {1, 0}}).rounds == 0);
}

TEST_CASE("canvas: a threshold inserts where the model is sure, and always the best") {
    const std::vector<std::vector<SlotScore>> scores = {
        {}, {}, {{5, std::log(0.6), -9, -1}, {6, std::log(0.5), -9, -0.1}, {7, std::log(0.3), -9, -1}}};
    const auto tokens = [&](double threshold) {
        Fixed model(scores);
        return write_one(model, parallel(threshold), {0, {1, 2}}).tokens;
    };
    CHECK(tokens(0) == std::vector<int>{5, 1, 6, 2, 7});
    CHECK(tokens(0.4) == std::vector<int>{5, 1, 6, 2});
    CHECK(tokens(0.55) == std::vector<int>{5, 1, 6, 2});  // slot 1 is the best by log p(c,l)
    CHECK(tokens(0.7) == std::vector<int>{1, 6, 2});
    CHECK(tokens(2) == std::vector<int>{1, 6, 2});
}

TEST_CASE("canvas: what stood in the start stays, and nothing comes into closed slots") {
    Middle model({20});
    Canvas start{0, {3, 4, 11}, {0, 1, 1, 0}};  // the slots between 3 and 4 and between 4 and 11 are closed
    for (bool at_once : {true, false}) {
        CanvasOptions o = parallel();
        o.parallel = at_once;
        const Written w = write_one(model, o, start);
        std::vector<int> wanted = counted(20);
        wanted.erase(wanted.begin() + 4, wanted.begin() + 10);
        CHECK(w.tokens == wanted);
        CHECK(w.ended);
        for (std::size_t i = 0; i < w.tokens.size(); i++) CHECK((w.came[i] == 0) == (i == 2 || i == 3 || i == 4));
    }
    Middle all_closed({3});
    const Written w = write_one(all_closed, parallel(), {0, {2}, {1, 1}});
    CHECK(w.tokens == std::vector<int>{2});
    CHECK(w.ended);
}

TEST_CASE("canvas: a canvas that may not go on has not ended, and the last round inserts the best of what has room") {
    CanvasOptions o = parallel();
    o.longest = 10;  // the rounds insert 1, 2 and 4 words, and then 3 of 8
    Middle model({20}), short_of_it({10});
    const Written w = write_one(model, o);
    CHECK(w.tokens.size() == 10);
    CHECK_FALSE(w.ended);
    CHECK(w.rounds == 4);
    CHECK(write_one(short_of_it, o).ended);  // it has the maximum length, but it is complete
    // Only two of the three slots may insert: the best ones by log p(c,l).
    Fixed three({{}, {}, {{5, -1, -9, -2}, {6, -1, -9, -1}, {7, -1, -9, -1.5}}});
    o.longest = 4;
    CHECK(write_one(three, o, {0, {1, 2}}).tokens == std::vector<int>{1, 6, 2, 7});
    o = parallel();
    o.most_rounds = 3;
    CHECK(write_one(model, o).tokens.size() == 7);
    CHECK(write_one(model, o).rounds == 3);
    CHECK_FALSE(write_one(model, o).ended);
    o.longest = 2;
    // The start may be longer than the limit.
    CHECK(write_one(model, o, {0, {1, 5, 9}}).tokens == std::vector<int>{1, 5, 9});
}

TEST_CASE("canvas: options that contradict each other and scores that are none are refused") {
    Middle model({3});
    CanvasOptions o = parallel();
    o.finalization = Finalization::sequence;
    CHECK_THROWS_WITH_AS(write_one(model, o),
                         doctest::Contains("--parallel needs a run in which each slot can end by itself; with "
                                           "finalization=sequence or order=left_to_right"),
                         BadUsage);
    for (double given : {0.5, 0.0}) {
        o = {};
        o.threshold = given;
        CHECK_THROWS_WITH_AS(write_one(model, o), doctest::Contains("--threshold applies only to parallel insertion"),
                             BadUsage);
    }
    CHECK_THROWS_WITH_AS(write_one(model, parallel(NAN)), doctest::Contains("of 0 or more"), BadUsage);
    o = {};
    o.sure_end = 1.5;
    CHECK_THROWS_WITH_AS(write_one(model, o),
                         doctest::Contains("a sure end in [0,1], found -1, 128, 2147483647, 0, 1.5"), BadUsage);
    o.sure_end = 0.5;
    o.finalization = Finalization::sequence;
    CHECK_THROWS_WITH_AS(write_one(model, o), doctest::Contains("--sure-end needs a run in which each slot"), BadUsage);
    Fixed broken({{{5, NAN, -1, 0}}});
    CHECK_THROWS_WITH_AS(write_one(broken, {}), doctest::Contains("slot 0 has a score that is not a number"), BadInput);
    Fixed few(std::vector<std::vector<SlotScore>>(1));
    CHECK_THROWS_WITH_AS(write_one(few, {}), doctest::Contains("scored 0 slots of 1"), Error);
    CHECK_THROWS_WITH_AS(write_one(model, {}, {0, {1}, {1}}), doctest::Contains("of 2 slots says of 1"), Error);
    // If no token is allowed, the slot ends, even if the end has a low score.
    Fixed nothing({{{5, -INFINITY, -INFINITY, 0}}});
    CHECK(write_one(nothing, {}).ended);
}

TEST_CASE("canvas: the rounds are drawn, new words in brackets, at most 80 columns") {
    Middle model({5});
    Written w = write_one(model, parallel());
    CHECK(draw_rounds(w, {"a", "b", "c", "d", "e"}) == "  1  [c]\n  2  [a] c [d]\n  3  a [b] c d [e]\n");
    w = write_one(model, parallel(), {0, {2, 4}});
    CHECK(draw_rounds(w, {"a", "b", "c", "d", "é"}) == "  0  b d\n  1  [a] b [c] d [é]\n");
    CHECK(draw_rounds({}, {}).empty());
    Middle many({60});
    const Written wide = write_one(many, parallel());
    const std::string drawn = draw_rounds(wide, std::vector<std::string>(60, "öööö"));
    std::size_t most = 0, line = 0;
    for (char c : drawn) {
        line = c == '\n' ? 0 : line + ((c & 0xC0) != 0x80);
        most = std::max(most, line);
    }
    CHECK(most <= 80);
    CHECK(most > 74);
    CHECK(drawn.find("\n     öööö") != std::string::npos);
    CHECK(drawn.find("  6  ") != std::string::npos);
}

// The canvas is "7", and one 7 is missing. Each of the two slots wants it with p = 1/2. If each slot decided alone,
// both would insert it when the end is a little less likely, and neither would otherwise. Together, they insert one.
TEST_CASE("canvas: slots beside equal tokens decide together") {
    for (double end : {0.45, 0.55}) {
        const SlotScore half{7, std::log(1 - end), std::log(end), std::log(0.5)};
        Fixed model({{{7, -0.1, -5, 0}}, {half, half}});
        for (bool in_parallel : {false, true}) {
            CanvasOptions o = in_parallel ? parallel() : CanvasOptions();
            const Written together = write_one(model, o);
            CHECK(together.tokens == std::vector<int>{7, 7});
            CHECK(together.came == std::vector<int>{2, 1});
            CHECK(
                together.score ==
                doctest::Approx(-0.1 + std::log(in_parallel ? std::min(1.0, 2 * (1 - end)) : 1 - end)).epsilon(1e-12));
            o.apart = true;
            CHECK(write_one(model, o).tokens.size() == (end > 0.5 ? 1 : in_parallel ? 3 : 2));
        }
    }
    // An open slot is combined only with other open slots that want the same token and are at the same run of this
    // token. A slot decides alone if its neighbour wants another token or is closed, or if the slot touches no token
    // equal to the one that it wants.
    const SlotScore third{7, std::log(0.3), std::log(0.6), std::log(0.25)},
        other{8, std::log(0.5), std::log(0.4), std::log(0.25)};
    Fixed model({{}, {}, {third, third, other}, {third, third, third, third}});
    CHECK(write_one(model, parallel(), {0, {7, 9}}).tokens == std::vector<int>{7, 7, 9, 8});
    CHECK(write_one(model, parallel(), {0, {7, 9}, {1, 0, 1}}).tokens == std::vector<int>{7, 9});
    CHECK(write_one(model, parallel(), {0, {7, 7, 5}}).tokens == std::vector<int>{7, 7, 7, 5});
    CHECK(write_one(model, parallel(), {0, {5, 7, 5}}).tokens == std::vector<int>{5, 7, 7, 5});
}

// The end has p = 0.4. This is more than any single word has, but less than all words together.
TEST_CASE("canvas: a slot that must be sure of its end goes on until it is") {
    const SlotScore unsure{7, std::log(0.3), std::log(0.4), 0}, sure{8, std::log(0.1), std::log(0.8), std::log(0.5)};
    Fixed model({{unsure}, {sure, sure}});
    CHECK(write_one(model, {}).tokens.empty());
    for (bool in_parallel : {false, true}) {
        CanvasOptions o = in_parallel ? parallel() : CanvasOptions();
        o.sure_end = 0.4;
        CHECK(write_one(model, o).tokens.empty());
        o.sure_end = 0.5;
        CHECK(write_one(model, o).tokens == std::vector<int>{7});
        o.sure_end = 0.4;
        o.end_penalty = 1;
        CHECK(write_one(model, o).tokens == std::vector<int>{7});
        o.sure_end = 0.5;
        o.end_penalty = -1;  // the penalty decides which of the two is likelier, but not how sure the end is
        CHECK(write_one(model, o).tokens == std::vector<int>{7});
    }
}
