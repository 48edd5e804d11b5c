// SPDX-License-Identifier: MIT
// Tests objectives: which row predicts what, that no row sees the token that it predicts, and that the random numbers
// of a document do not depend on the other documents of the batch.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "engine/ops/cpu/parallel.h"
#include "engine/tensor/numbers.h"
#include "models/tasks/objective_parts.h"
#include "models/nets/unilm.h"
#include "tests/models/runs/small_pairs.h"

using namespace masquerade;
using small_pairs::V;

namespace {

BackboneOptions small(bool pre_norm, bool rotary) {
    BackboneOptions o;
    o.vocabulary = V;
    o.width = 16;
    o.heads = 2;
    o.inner = 24;
    o.layers = 3;
    o.positions = 48;
    o.rotary = rotary;
    o.pre_norm = pre_norm;
    o.deviation = 0.3;
    return o;
}

ObjectiveOptions options() {
    ObjectiveOptions o = small_pairs::options();
    o.hidden = 0.3;
    o.predicted = 0.5;
    return o;
}

std::vector<Sentence> pairs(int count, std::uint64_t seed) { return small_pairs::pairs(count, seed, {8, 6, 10}); }

struct Model : small_pairs::Small<UniLm, BackboneOptions> {
    using Small::Small;
    // Returns the hidden state of every scored row, (M)(C).
    std::vector<std::vector<double>> says(const Batch& batch) {
        tape.begin("says");
        const OnHost h(model.hidden(tape, batch)->view());
        const auto C = h.view().columns();
        std::vector<std::vector<double>> rows(std::size_t(h.view().rows()));
        for (std::size_t m = 0; m < rows.size(); m++)
            for (std::int64_t c = 0; c < C; c++) rows[m].push_back(h[std::int64_t(m) * C + c]);
        tape.end();
        return rows;
    }
};

int& token(Sentence& s, int place) {
    const int n = int(s.ids.size());
    return place < n ? s.ids[std::size_t(place)] : s.target[std::size_t(place - n)];
}

}  // namespace

TEST_CASE("objective: what is asked of one pair") {
    Sentence s;
    s.ids = {2, 11, 12, 13, 3};
    s.target = {21, 22, 3};
    const ObjectiveOptions o = options();
    auto asked = [&](const char* name) {
        std::vector<int> all;
        const Example e = find_objective(name).make(s, 0, o);
        for (std::size_t m = 0; m < e.labels.rows.size(); m++) {
            all.push_back(e.rows.ids[std::size_t(e.labels.rows[m])]);
            all.push_back(e.labels.tokens[m]);
        }
        return all;
    };
    CHECK(asked("unilm") == std::vector<int>{3, 21, 21, 22, 22, 3});
    CHECK(asked("lm-target") == asked("unilm"));
    CHECK(asked("unilm-reverse") == std::vector<int>{3, 22, 22, 21, 21, 3});
    CHECK(asked("lm") == std::vector<int>{2, 11, 11, 12, 12, 13, 13, 3, 3, 21, 21, 22, 22, 3});
    CHECK(asked("lm-reverse") == std::vector<int>{11, 2, 12, 11, 13, 12, 3, 13, 21, 3, 22, 21, 3, 22});

    const Example e = find_objective("unilm").make(s, 0, o);
    CHECK(e.rows.ids == std::vector<int>{2, 11, 12, 13, 3, 21, 22});
    CHECK(e.rows.types == std::vector<int>{0, 0, 0, 0, 0, 1, 1});
    CHECK(e.rows.positions == std::vector<int>{0, 1, 2, 3, 4, 5, 6});
    CHECK(e.document.source == 5);
    CHECK(e.document.target == 2);
    ObjectiveOptions fixed = o;
    fixed.target_start = 16;
    CHECK(find_objective("unilm").make(s, 0, fixed).rows.positions == std::vector<int>{0, 1, 2, 3, 4, 16, 17});
}

TEST_CASE("objective: draws go by seed, sentence and step, each by itself") {
    ObjectiveOptions o = options(), reseeded = o;
    reseeded.seed = 9;
    Sentence s, other;
    s.ids.push_back(2);
    for (int i = 0; i < 40; i++) s.ids.push_back(5 + i % (V - 5));
    s.ids.push_back(3);
    s.target = {7, 8, 9, 10, 11, 12, 13, 14, 7, 8, 9, 3};
    other = s;
    other.name = 1;
    for (const char* name : {"mlm", "prefix-lm", "unilm-masked", "plm", "pmlm", "diffusion", "block-diffusion",
                             "any-order", "k-bert", "plm-shuffled"}) {
        CAPTURE(name);
        auto made = [&](const Sentence& of, std::uint32_t step, const ObjectiveOptions& by) {
            const Example e = find_objective(name).make(of, step, by);
            std::vector<int> all = e.rows.ids;
            all.insert(all.end(), e.rows.types.begin(), e.rows.types.end());
            all.insert(all.end(), e.rank.begin(), e.rank.end());
            for (std::size_t m = 0; m < e.labels.rows.size(); m++)
                all.push_back(e.labels.rows[m]), all.push_back(e.labels.tokens[m]);
            return all;
        };
        const std::vector<int> once = made(s, 3, o);
        CHECK(made(s, 3, o) == once);
        CHECK(made(s, 4, o) != once);
        CHECK(made(other, 3, o) != once);
        CHECK(made(s, 3, reseeded) != once);
    }
}

TEST_CASE("objective: random tokens are no special ones, orders hold every rank, queries stand at their tokens") {
    ObjectiveOptions o = options();
    o.kept = 0, o.random = 1, o.hidden = 1;
    Sentence s;
    s.ids = {2, 11, 12, 13, 14, 15, 3};
    std::set<int> drawn;
    for (std::uint32_t step = 0; step < 300; step++)
        for (int id : find_objective("mlm").make(s, step, o).rows.ids) drawn.insert(id);
    for (int id : drawn) CHECK((id == 2 || id == 3 || !is_special(id, o)));
    CHECK(int(drawn.size()) == V - 5 + 2);  // all ordinary tokens, [CLS] and [SEP]

    o = options();
    o.predicted = 1;
    std::set<int> first;  // places of the token with rank 0
    for (std::uint32_t step = 0; step < 60; step++) {
        const Example e = find_objective("plm").make(s, step, o);
        std::vector<int> ranks(e.rank.begin() + 1, e.rank.begin() + 6);
        first.insert(int(std::find(ranks.begin(), ranks.end(), 0) - ranks.begin()));
        std::sort(ranks.begin(), ranks.end());
        CHECK(ranks == std::vector<int>{0, 1, 2, 3, 4});
        for (std::size_t m = 0; m < e.labels.rows.size(); m++) {
            const std::size_t row = std::size_t(e.labels.rows[m]);
            CHECK(s.ids[std::size_t(e.rows.positions[row])] == e.labels.tokens[m]);
            CHECK(e.rank[row] == e.rank[std::size_t(e.rows.positions[row])]);
        }
    }
    CHECK(first == std::set<int>{0, 1, 2, 3, 4});

    std::set<int> prefixes;
    for (std::uint32_t step = 0; step < 100; step++)
        prefixes.insert(find_objective("prefix-lm").make(s, step, o).document.source);
    CHECK(prefixes == std::set<int>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("objective: mlm hides by the shares it is given") {
    ObjectiveOptions o = options();
    o.hidden = 0.15;
    Sentence s;
    s.ids.push_back(2);
    for (int i = 0; i < 100; i++) s.ids.push_back(5 + i % (V - 5));
    s.ids.push_back(3);
    std::map<std::string, int> count;
    int asked = 0;
    for (std::uint32_t step = 0; step < 400; step++) {
        const Example e = find_objective("mlm").make(s, step, o);
        for (std::size_t m = 0; m < e.labels.rows.size(); m++) {
            const int row = e.labels.rows[m], token = e.labels.tokens[m], now = e.rows.ids[std::size_t(row)];
            CHECK(token == s.ids[std::size_t(row)]);
            CHECK(token >= 5);
            count[now == 4 ? "mask" : now == token ? "kept" : "random"]++;
            asked++;
        }
    }
    auto near = [](double share, double expected) { return std::abs(share - expected) < 0.012; };
    CHECK(near(asked / 40000.0, 0.15));
    CHECK(near(count["mask"] / double(asked), 0.8));
    CHECK(near(count["kept"] / double(asked), 0.1 + 0.1 / 35));
    CHECK(near(count["random"] / double(asked), 0.1 - 0.1 / 35));
    s.ids = {2, 17, 3};  // the only ordinary token must be hidden
    CHECK(find_objective("mlm").make(s, 3, o).labels.size() == 1);
}

TEST_CASE("objective: no row sees what it is asked for, and every row listens") {
    ObjectiveOptions o = options();
    o.kept = 0;  // a hidden token that is kept shows its answer by design
    for (bool rotary : {true, false})
        for (const Objective& objective : objectives()) {
            CAPTURE(std::string(objective.name));
            Model m(small(!rotary, rotary));
            std::vector<Sentence> text = pairs(3, 5);
            const Batch batch = objective.batch(pointers_to(text), 9, o);
            const auto before = m.says(batch);
            std::set<int> listened;
            for (std::size_t d = 0; d < text.size(); d++)
                for (int place = 0; place < int(text[d].size()); place++) {
                    std::vector<Sentence> changed = text;
                    int& id = token(changed[d], place);
                    if (id < 5) continue;
                    id = id == 5 ? 6 : id - 1;
                    const Batch other = objective.batch(pointers_to(changed), 9, o);
                    REQUIRE(other.labels.rows == batch.labels.rows);
                    const auto after = m.says(other);
                    for (std::size_t row = 0; row < before.size(); row++) {
                        const bool own = int(row) >= batch.labels.begin[d] && int(row) < batch.labels.begin[d + 1];
                        if (!own || other.labels.tokens[row] != batch.labels.tokens[row])
                            CHECK(before[row] == after[row]);
                        else if (before[row] != after[row])
                            listened.insert(int(row));
                    }
                }
            // The first row of a language model, and the first rank of a permutation without context, depend only on
            // special tokens.
            CHECK(int(listened.size()) >= batch.labels.count - 3 * 2);
            CHECK(listened.size() > 0);
        }
}

TEST_CASE("objective: causal masks, token by token") {
    const ObjectiveOptions o = options();
    for (const char* name : {"lm", "lm-target", "lm-reverse", "unilm"}) {
        CAPTURE(std::string(name));
        const Objective& objective = find_objective(name);
        Model m(small(false, true));
        std::vector<Sentence> text = pairs(1, 8);
        const int n = int(text[0].ids.size());
        const Batch batch = objective.batch(pointers_to(text), 0, o);
        const auto before = m.says(batch);
        for (int place = 1; place < int(text[0].size()); place++) {
            std::vector<Sentence> changed = text;
            int& id = token(changed[0], place);
            id = id == 7 ? 8 : 7;
            const auto after = m.says(objective.batch(pointers_to(changed), 0, o));
            for (std::size_t row = 0; row < before.size(); row++) {
                const int at = batch.labels.rows[row];  // index among the packed rows
                const bool reverse = std::string(name) == "lm-reverse";
                const bool full = std::string(name) == "unilm" && place < n;
                const bool sees = reverse ? place >= at + 1 : full || place <= at;
                CHECK((before[row] != after[row]) == sees);
            }
        }
    }
}

TEST_CASE("objective: a query of plm hears the ranks below its own, wherever they stand") {
    const ObjectiveOptions o = options();
    Model m(small(false, true));
    std::vector<Sentence> text = pairs(1, 21);
    const Objective& plm = find_objective("plm");
    const Example e = plm.make(text[0], 4, o);
    const auto before = m.says(plm.batch(pointers_to(text), 4, o));
    REQUIRE(e.labels.size() >= 3);
    for (int place = 0; place < e.document.source; place++) {
        std::vector<Sentence> changed = text;
        int& id = token(changed[0], place);
        if (id < 5) continue;
        id = id == 5 ? 6 : id - 1;
        const auto after = m.says(plm.batch(pointers_to(changed), 4, o));
        for (std::size_t q = 0; q < before.size(); q++)
            CHECK((before[q] != after[q]) == (e.rank[std::size_t(place)] < e.rank[std::size_t(e.labels.rows[q])]));
    }
}

TEST_CASE(
    "objective: k-bert makes a tree of a sentence, hides none of its facts, and shows them to their words alone") {
    ObjectiveOptions o = options();
    for (int i = 0; i < 4; i++) o.brackets[i] = 36 + i;
    const int open = 36, close = 37, fact = 38, end = 39;
    Sentence s;
    s.ids = {2, 11, open, 12, 13, close, fact, 21, 22, end, fact, 23, end, 14, open, 15, close, fact, 24, end, 3};
    const Example tree = tree_of(s, o);
    CHECK(tree.rows.ids == std::vector<int>{2, 11, 12, 13, 21, 22, 23, 14, 15, 24, 3});
    CHECK(tree.rows.positions == std::vector<int>{0, 1, 2, 3, 4, 5, 4, 4, 5, 6, 6});
    CHECK(tree.rank == std::vector<int>{-1, -1, 0, 0, -2, -2, -3, -1, 1, -4, -1});
    CHECK(tree.document.source == 11);
    const Objective& objective = find_objective("k-bert");
    std::set<int> asked;
    for (std::uint32_t step = 0; step < 60; step++)
        for (int row : objective.make(s, step, o).labels.rows) asked.insert(row);
    CHECK(asked == std::set<int>{1, 2, 3, 7, 8});
    Sentence other = s;
    other.name = 1;
    const Batch batch = objective.batch({&s, &other}, 0, o);
    const SegmentGraph expected =
        knowledge_mask({{11, 0}, {11, 0}}, {-1, -1, 0, 0, 0, 0, 0, -1, 1, 1, -1, -1, -1, 0, 0, 0, 0, 0, -1, 1, 1, -1},
                       {-1, -1, -1, -1, 0, 0, 1, -1, -1, 2, -1, -1, -1, -1, -1, 0, 0, 1, -1, -1, 2, -1});
    CHECK(batch.graph.bits == expected.bits);

    // The facts of a target move its own positions. Those of the source move them only if the target follows it.
    Sentence pair;
    pair.ids = {2, open, 11, close, fact, 12, end, 3}, pair.target = {open, 21, close, fact, 22, end, 23, 3};
    CHECK(tree_of(pair, o).rows.ids == std::vector<int>{2, 11, 12, 3, 21, 22, 23, 3});
    CHECK(tree_of(pair, o).rows.positions == std::vector<int>{0, 1, 2, 2, 3, 4, 4, 5});
    ObjectiveOptions fixed = o;
    fixed.target_start = 16;
    CHECK(tree_of(pair, fixed).rows.positions == std::vector<int>{0, 1, 2, 2, 16, 17, 17, 18});

    // Brackets in any other form are words of the sentence.
    for (const std::vector<int>& ids : {std::vector<int>{2, open, 11, close, 12, 3},
                                        {2, open, 11, fact, 12, end, 3},
                                        {2, fact, 11, end, 3},
                                        {2, open, close, fact, 11, end, 3},
                                        {2, open, 11, close, fact, end, 3},
                                        {2, open, 11, close, fact, 12, 3},
                                        {2, open, open, 11, close, 3},
                                        {2, open, 11, close, 12, fact, 13, end, 3}}) {
        Sentence plain;
        plain.ids = ids;
        CHECK(tree_of(plain, o).rows.ids == ids);
    }
    s.ids = {2, open, 11, close, fact, 12, end, fact, 13, 3};  // the second fact is cut off
    CHECK(tree_of(s, o).rows.ids == std::vector<int>{2, 11, 12, fact, 13, 3});
}

TEST_CASE("objective: a document alone == in any batch, padded or not, at any number of threads") {
    const int threads_before = threads();
    for (const Objective& objective : objectives()) {
        CAPTURE(std::string(objective.name));
        Model m(small(false, true));
        const std::vector<Sentence> text = pairs(20, 3);
        const Batch all = objective.batch(pointers_to(text), 2, options(), 32);
        CHECK(all.rows.count() % 32 == 0);
        CHECK(all.labels.rows.size() % 32 == 0);
        set_threads(1);
        const auto together = m.says(all);
        set_threads(3);
        CHECK(m.says(all) == together);
        for (std::size_t d = 0; d < text.size(); d++) {
            const Batch one = objective.batch({&text[d]}, 2, options());
            const auto alone = m.says(one);
            REQUIRE(int(alone.size()) == all.labels.begin[d + 1] - all.labels.begin[d]);
            for (std::size_t row = 0; row < alone.size(); row++)
                CHECK(alone[row] == together[std::size_t(all.labels.begin[d]) + row]);
        }
    }
    set_threads(threads_before);
}

TEST_CASE("objective: what cannot be is refused by name") {
    CHECK_THROWS_WITH_AS(find_objective("unlm"), doctest::Contains("there are mlm, lm,"), BadUsage);
    std::vector<Sentence> text = pairs(1, 3);
    text[0].target.clear();
    CHECK_THROWS_WITH_AS(find_objective("unilm").batch(pointers_to(text), 0, options()),
                         doctest::Contains("needs pairs, but sentence 10 has no target"), BadInput);
    ObjectiveOptions o = options();
    o.mask = -1;
    CHECK_THROWS_WITH_AS(find_objective("mlm").batch(pointers_to(text), 0, o), doctest::Contains("needs [MASK]"),
                         BadUsage);
}
