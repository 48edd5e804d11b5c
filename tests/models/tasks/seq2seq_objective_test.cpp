// SPDX-License-Identifier: MIT
// Tests objectives of two stacks: what the encoder and the decoder read, what is predicted, and the probabilities with
// which mass draws.
#include <doctest/doctest.h>

#include <map>

#include "models/tasks/objective.h"

using namespace masquerade;

namespace {

constexpr int V = 40;

ObjectiveOptions options() {
    ObjectiveOptions o;
    o.vocabulary = V;
    o.special = {0, 1, 2, 3, 4};
    o.mask = 4;
    return o;
}

// Returns [CLS] = 2, n different ordinary tokens, and [SEP] = 3.
Sentence line(int n) {
    Sentence s;
    s.ids.push_back(2);
    for (int i = 0; i < n; i++) s.ids.push_back(5 + i);
    s.ids.push_back(3);
    return s;
}

}  // namespace

TEST_CASE("objectives: each makes an example of unknown words where there is no other token to draw") {
    ObjectiveOptions o = options();
    o.vocabulary = 5;
    o.random = 1, o.kept = 0;
    Sentence s;
    s.ids = {2, 1, 1, 1, 3};
    s.target = {1, 1, 3};
    for (const std::vector<Objective>* table : {&objectives(false), &objectives(true)})
        for (const Objective& objective : *table)
            for (std::uint32_t step = 0; step < 9; step++)
                for (int id : objective.make(s, step, o).rows.ids) CHECK(id < 5);
}

TEST_CASE("seq2seq objective: what is read and asked of one pair") {
    Sentence s;
    s.ids = {2, 11, 12, 13, 3};
    s.target = {21, 22, 3};
    const Example e = find_objective("seq2seq", true).make(s, 0, options());
    CHECK(e.source.ids == s.ids);
    CHECK(e.source.positions == std::vector<int>{0, 1, 2, 3, 4});
    CHECK(e.source.types == std::vector<int>(5, 0));
    CHECK(e.rows.ids == std::vector<int>{2, 21, 22});
    CHECK(e.rows.positions == std::vector<int>{0, 1, 2});
    CHECK(e.rows.types == std::vector<int>(3, 1));
    CHECK(e.labels.tokens == s.target);
}

TEST_CASE("seq2seq objective: mass hides one span, and feeds the true tokens before each of it where they stand") {
    for (int n = 1; n <= 12; n++)
        for (std::uint32_t step = 0; step < 40; step++) {
            CAPTURE(n);
            ObjectiveOptions o = options();
            o.kept = o.random = 0;
            const Sentence s = line(n);
            const Example e = find_objective("mass", true).make(s, step, o);
            const int length = std::max(1, (n + 1) / 2);  // half of the tokens, rounded up
            REQUIRE(e.rows.count() == length);
            REQUIRE(int(e.labels.size()) == length);
            REQUIRE(e.source.count() == n + 2);
            const int first = e.rows.positions[0] + 1;
            CHECK(first >= 1);
            CHECK(first + length <= n + 1);
            for (int i = 0; i < n + 2; i++) {
                const bool hidden = i >= first && i < first + length;
                CHECK(e.source.ids[std::size_t(i)] == (hidden ? 4 : s.ids[std::size_t(i)]));
                CHECK(e.source.positions[std::size_t(i)] == i);
            }
            for (int t = 0; t < length; t++) {
                CHECK(e.labels.tokens[std::size_t(t)] == s.ids[std::size_t(first + t)]);
                CHECK(e.rows.ids[std::size_t(t)] == s.ids[std::size_t(first + t - 1)]);
                CHECK(e.rows.positions[std::size_t(t)] == first + t - 1);
            }
        }
}

TEST_CASE("seq2seq objective: mass by its shares: where spans start, and what is read in their place") {
    const Sentence s = line(20);
    const ObjectiveOptions o = options();
    constexpr int steps = 6000, starts = 11, length = 10;
    std::map<int, int> start;
    std::map<std::string, int> read;
    for (std::uint32_t step = 0; step < steps; step++) {
        const Example e = find_objective("mass", true).make(s, step, o);
        REQUIRE(e.rows.count() == length);
        start[e.rows.positions[0] + 1]++;
        for (int t = 0; t < length; t++) {
            const int now = e.source.ids[std::size_t(e.rows.positions[std::size_t(t)]) + 1];
            read[now == 4 ? "mask" : now == e.labels.tokens[std::size_t(t)] ? "kept" : "random"]++;
            CHECK((now == 4 || now >= 5));
        }
    }
    // The span starts at the first place with probability 0.2, at the last place with 0.2, and anywhere with 0.6. Four
    // standard deviations of 6,000 draws are 0.022 for a probability of 0.25, and 0.012 for 0.055.
    REQUIRE(start.size() == starts);
    for (const auto& [place, count] : start) {
        const bool end = place == 1 || place == starts;
        const double expected = 0.6 / starts + (end ? 0.2 : 0);
        CHECK(std::abs(count / double(steps) - expected) < (end ? 0.022 : 0.012));
    }
    const double all = steps * length;
    CHECK(std::abs(read["mask"] / all - 0.8) < 0.007);
    CHECK(std::abs(read["kept"] / all - (0.1 + 0.1 / 35)) < 0.005);
    CHECK(std::abs(read["random"] / all - (0.1 - 0.1 / 35)) < 0.005);
}

TEST_CASE("seq2seq objective: a batch is filled up to its bucket by rows of weight 0") {
    std::vector<Sentence> text = {line(3), line(7), line(5)};
    std::vector<const Sentence*> all;
    for (std::size_t i = 0; i < text.size(); i++) {
        text[i].name = int(i);
        text[i].target = {9, 3};
        all.push_back(&text[i]);
    }
    for (const Objective& objective : objectives(true)) {
        const Batch b = objective.batch(all, 0, options(), 16), bare = objective.batch(all, 0, options());
        CHECK(b.source.count() % 16 == 0);
        CHECK(b.rows.count() % 16 == 0);
        CHECK(b.source_graph.documents == 8);
        CHECK(b.cross_graph.documents == 8);
        CHECK(b.documents == 3);
        CHECK(b.labels.count == bare.labels.count);
        CHECK(b.labels.size() % 16 == 0);
        CHECK(bare.source.count() == 5 + 9 + 7);
        for (int m = 0; m < b.labels.size(); m++)
            CHECK(b.labels.weights[std::size_t(m)] == (m < b.labels.count ? bare.labels.weights[std::size_t(m)] : 0));
        if (objective.has(Objective::scattered)) continue;
        CHECK(b.labels.count == bare.rows.count());
        CHECK(b.labels.size() == b.rows.count());
        for (int m = 0; m < b.labels.count; m++) CHECK(b.labels.weights[std::size_t(m)] == 1);
    }
}

TEST_CASE("seq2seq objective: what cannot be is refused by name") {
    CHECK_THROWS_WITH_AS(find_objective("unilm", true),
                         doctest::Contains("there are seq2seq, seq2seq-reverse, mass, diffusion"), BadUsage);
    const Sentence s = line(3);
    CHECK_THROWS_WITH_AS(find_objective("seq2seq", true).batch({&s}, 0, options()),
                         doctest::Contains("needs pairs, but sentence 0 has no target"), BadInput);
    ObjectiveOptions o = options();
    o.mask = -1;
    CHECK_THROWS_WITH_AS(find_objective("mass", true).batch({&s}, 0, o), doctest::Contains("needs [MASK]"), BadUsage);
}
