// SPDX-License-Identifier: MIT
// Works out K-BERT (Liu et al. 2020): a sentence tree, its soft positions, its visible matrix, and how knowledge
// travels through a stack. In the first layer, only the word that owns a branch sees the branch. In the next layer, the
// rest of the sentence gets this knowledge from the word.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "engine/ops/cpu/parallel.h"
#include "tests/models/masks/knowledge_tree.h"

using namespace masquerade;
using namespace masquerade::knowledge_tree;

namespace {

// "marie curie" has two facts, and "paris" has one.
Tree example() {
    return {{ids("[CLS]")},
            {ids("marie curie"), {ids("born warsaw"), ids("found radium")}},
            {ids("worked in")},
            {ids("paris"), {ids("capital france")}},
            {ids("then [SEP]")}};
}
const std::vector<std::string> example_rows = {"[CLS]",  "marie", "curie", "+born",    "+warsaw", "+found", "+radium",
                                               "worked", "in",    "paris", "+capital", "+france", "then",   "[SEP]"};

double difference(const States& a, const States& b) {
    double worst = 0;
    for (std::size_t l = 0; l < b.size(); l++)
        for (std::size_t i = 0; i < b[l].size(); i++)
            for (std::size_t c = 0; c < b[l][i].size(); c++) worst = std::max(worst, std::abs(a[l][i][c] - b[l][i][c]));
    return worst;
}

}  // namespace

TEST_CASE("k-bert: the rows of a sentence tree, their soft positions and their visible matrix") {
    const Trees s = laid_out(example());
    CHECK(s.rows.ids == ids("[CLS] marie curie born warsaw found radium worked in paris capital france then [SEP]"));
    CHECK(s.rows.positions == std::vector<int>{0, 1, 2, 3, 4, 3, 4, 3, 4, 5, 6, 7, 6, 7});
    CHECK(laid_out(bare(example())).rows.positions == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
    const std::vector<std::string> columns = {"[CLS]", "m", "c", "b", "w", "f", "r", "w", "i", "p", "c", "f", "t", "S"};
    const std::string picture =
        "           C  m  c  b  w  f  r  w  i  p  c  f  t  S\n"
        "\n"
        "[CLS]      ██ ██ ██ ·  ·  ·  ·  ██ ██ ██ ·  ·  ██ ██\n"
        "marie      ██ ██ ██ ██ ██ ██ ██ ██ ██ ██ ·  ·  ██ ██\n"
        "curie      ██ ██ ██ ██ ██ ██ ██ ██ ██ ██ ·  ·  ██ ██\n"
        "+born      ·  ██ ██ ██ ██ ·  ·  ·  ·  ·  ·  ·  ·  ·\n"
        "+warsaw    ·  ██ ██ ██ ██ ·  ·  ·  ·  ·  ·  ·  ·  ·\n"
        "+found     ·  ██ ██ ·  ·  ██ ██ ·  ·  ·  ·  ·  ·  ·\n"
        "+radium    ·  ██ ██ ·  ·  ██ ██ ·  ·  ·  ·  ·  ·  ·\n"
        "worked     ██ ██ ██ ·  ·  ·  ·  ██ ██ ██ ·  ·  ██ ██\n"
        "in         ██ ██ ██ ·  ·  ·  ·  ██ ██ ██ ·  ·  ██ ██\n"
        "paris      ██ ██ ██ ·  ·  ·  ·  ██ ██ ██ ██ ██ ██ ██\n"
        "+capital   ·  ·  ·  ·  ·  ·  ·  ·  ·  ██ ██ ██ ·  ·\n"
        "+france    ·  ·  ·  ·  ·  ·  ·  ·  ·  ██ ██ ██ ·  ·\n"
        "then       ██ ██ ██ ·  ·  ·  ·  ██ ██ ██ ·  ·  ██ ██\n"
        "[SEP]      ██ ██ ██ ·  ·  ·  ·  ██ ██ ██ ·  ·  ██ ██\n";
    CHECK(draw_graph(s.visible_matrix(), example_rows, {columns}) == picture);
    CHECK(draw_graph(s.as_segments(), example_rows, {columns}) == picture);
}

TEST_CASE("k-bert: after one layer only the words that own branches know of them, after two all do") {
    for (bool pre_norm : {false, true})
        for (bool rotary : {false, true})
            for (bool training : {false, true}) {
                BackboneOptions o = small(3, pre_norm, rotary);
                o.dropout = 0.2;  // attention dropout is drawn by the places of keys, and branches change these places
                Model m(o);
                const Trees with = laid_out(example()), without = laid_out(bare(example()));
                const States a = m.states(with, with.visible_matrix(), training),
                             b = m.states(without, full_mask(without.documents), training),
                             deaf = m.states(with, deaf_words(with), training);
                for (std::size_t l = 0; l < 3; l++) {
                    std::size_t word = 0;  // the row in the sentence without branches
                    for (int row = 0; row < with.rows.count(); row++) {
                        if (!with.in_trunk(row)) continue;
                        CAPTURE(example_rows[std::size_t(row)]);
                        const bool same = a[l][std::size_t(row)] == b[l][word];
                        CHECK(same == (l == 0 && !with.owns(row)));
                        // if words do not see their branches, no information of a branch reaches the trunk
                        CHECK(deaf[l][std::size_t(row)] == b[l][word]);
                        word++;
                    }
                }
            }
}

TEST_CASE("k-bert: after n layers a row has heard what lies n steps of the visible matrix away, and nothing else") {
    const Trees s = laid_out(example());
    const int N = s.rows.count();
    Model m(small(3), DType::f64);
    const SegmentGraph graph = s.visible_matrix();
    const States before = m.states(s, graph);
    std::vector<States> after;  // after[j]: the states if row j has another token
    for (int j = 0; j < N; j++) {
        Trees other = s;
        other.rows.ids[std::size_t(j)] = small_pairs::V - 1;
        after.push_back(m.states(other, graph));
    }
    std::set<std::pair<int, int>> heard;  // pairs (i, j) for which row i depends on row j
    for (int i = 0; i < N; i++) heard.insert({i, i});
    auto hears = [&](const char* i, const char* j) {
        auto row = [](const char* name) {
            return int(std::find(example_rows.begin(), example_rows.end(), name) - example_rows.begin());
        };
        return heard.count({row(i), row(j)}) > 0;
    };
    for (std::size_t l = 0; l < 3; l++) {
        const auto so_far = heard;
        for (const auto& [k, j] : so_far)
            for (int i = 0; i < N; i++)
                if (s.see_each_other(i, k)) heard.insert({i, j});
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                CAPTURE(example_rows[std::size_t(i)]);
                CAPTURE(example_rows[std::size_t(j)]);
                const bool changed = before[l][std::size_t(i)] != after[std::size_t(j)][l][std::size_t(i)];
                CHECK(changed == (heard.count({i, j}) > 0));
            }
        CHECK(hears("+radium", "curie"));
        CHECK(hears("curie", "+radium"));
        CHECK(hears("then", "+radium") == (l >= 1));
        CHECK(hears("+radium", "+born") == (l >= 1));    // both branches belong to the same word
        CHECK(hears("+radium", "+france") == (l >= 2));  // the branches belong to different words
    }
}

TEST_CASE("k-bert: bits == segments in every type, states and gradients; each alone == in a batch; any threads") {
    const int threads_before = threads();
    Tree other = example();
    other[3].branches.push_back(ids("seat louvre"));
    Trees both = laid_out(example(), 4);
    both.add(other, 5);
    const SegmentGraph bits = both.visible_matrix(), segments = both.as_segments();
    CHECK(segments.bits.empty());
    States exact;  // computed by the definition of attention; the other types use the fast forms
    for (DType type : {DType::f64, DType::f32, DType::bf16}) {
        CAPTURE(std::string(name_of(type)));
        Model m(small(3), type);
        const States by_bits = m.states(both, bits);
        if (type == DType::f64) exact = by_bits;
        if (type == DType::f32) CHECK(difference(by_bits, exact) < 1e-5);
        for (int n : {1, 3}) {
            set_threads(n);
            CHECK(m.states(both, bits) == by_bits);
            CHECK(m.states(both, segments) == by_bits);
        }
        int first = 0;
        for (const Tree& tree : {example(), other}) {
            const Trees alone = laid_out(tree, first == 0 ? 4 : 5);
            const States one = m.states(alone, alone.visible_matrix());
            for (std::size_t l = 0; l < 3; l++)
                for (int i = 0; i < alone.rows.count(); i++)
                    CHECK(one[l][std::size_t(i)] == by_bits[l][std::size_t(first + i)]);
            first += alone.rows.count();
        }
        std::vector<Row> gradients;
        for (const SegmentGraph* graph : {&bits, &segments}) {
            m.tape.begin("gradient");
            m.loss_and_gradient(asked(both, *graph, {0, 4, 10, 20}, {7, 8, 9, 10}));
            const OnHost g(m.parameters.gradients());
            gradients.emplace_back();
            for (std::int64_t i = 0; i < g.view().count(); i++) gradients.back().push_back(g[i]);
            m.tape.end();
        }
        CHECK(gradients[0] == gradients[1]);
    }
    set_threads(threads_before);
}

TEST_CASE("k-bert: the gradient of a stack under the visible matrix against the complex step") {
    Trees s = laid_out(example(), 0);
    s.add(bare(example()), 1);
    for (bool pre_norm : {false, true})
        CHECK(small_pairs::gradient_error<Model>(small(3, pre_norm), asked(s, s.visible_matrix(), {0, 4, 8, 13, 17},
                                                                           {7, 8, 9, 10, 11})) <= 1e-11);
}

TEST_CASE(
    "k-bert: [MASK] is filled from a branch of another word where there are two layers, and only through "
    "that word") {
    Trees s;
    std::vector<int> rows, targets;
    for (const char* who : {"ada", "emmy", "grace"})
        for (const char* where : {"london", "bath", "riga", "oslo"}) {  // the sentences are equal except for the branch
            const int first = s.rows.count();
            s.add({{ids("[CLS]")}, {ids(who), {ids("lives"), ids(where)}}, {ids("is in [MASK] [SEP]")}},
                  int(rows.size()));
            rows.push_back(first + 6);
            targets.push_back(ids(where)[0]);
        }
    CHECK(s.rows.ids[std::size_t(rows[3])] == 4);
    const double guess = std::log(4.0);
    auto last_loss = [&](int layers, const SegmentGraph& graph) {
        BackboneOptions o = small(layers);
        o.deviation = 0.15;
        Model m(o);
        return small_pairs::learned(m, 150, [&](std::uint32_t) { return asked(s, graph, rows, targets); });
    };
    CHECK(last_loss(2, s.visible_matrix()) < 0.05);
    CHECK(last_loss(1, s.visible_matrix()) > guess - 1e-5);
    CHECK(last_loss(3, deaf_words(s)) > guess - 1e-5);
}
