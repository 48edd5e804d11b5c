// SPDX-License-Identifier: MIT
// Tests the bound of masked diffusion on a model that is a table: for each place and each canvas, the probabilities of
// three tokens. The expected numbers come from a program that enumerates all orders in which three places can be
// predicted, and all sets of hidden places.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "models/tasks/diffusion_objective.h"
#include "models/tasks/objective_parts.h"

using namespace masquerade;

namespace {

constexpr int sep = 3, mask = 4;
using Canvas = std::vector<int>;  // three tokens of the table: 0, 1, 2; 3 is [MASK]

// -log p(token v at place i | canvas)
double cost(int i, int v, const Canvas& c) {
    const auto z = [&](int u) {
        return ((5 * i + 3 * u + 7 * c[0] + 11 * c[1] + 13 * c[2] + u * (c[0] + 2 * c[1] + 3 * c[2])) % 17) / 8.0;
    };
    return std::log(std::exp(z(0)) + std::exp(z(1)) + std::exp(z(2))) - z(v);
}

// Returns the bound of a text of three places, computed from everything that the objective draws: for each block, the
// mean over k of the mean over the sets of k places. `token` maps ids of the objective to tokens of the table. A block
// sees [MASK] at the places of later blocks.
double bound(const char* objective, const Sentence& s, const ObjectiveOptions& options,
             const std::map<int, int>& token) {
    ObjectiveOptions o = options;
    o.mask = mask;
    const int length = std::string(objective) == "diffusion" ? 3 : std::min(3, o.diffusion.block);  // of a block
    double bounds = 0;                                                                              // of all blocks
    for (int first = 0; first < 3; first += length) {
        const int end = std::min(3, first + length), n = end - first;
        std::map<int, std::map<std::vector<int>, double>> losses;  // of each k and each drawn canvas with its labels
        std::map<int, std::map<std::vector<int>, int>> counts;
        Sentence visited = s;
        for (std::uint32_t step = 0; step < 3000; step++) {
            visited.visit = step;
            const Example e = find_objective(objective).make(visited, step, o);
            const int place_of_first = e.document.source;  // row of place 0
            Canvas canvas(3, 3);
            for (int i = 0; i < end; i++) {
                const int row = i < first ? 1 + i : place_of_first + i;  // the true tokens follow [CLS]
                canvas[std::size_t(i)] = token.at(e.rows.ids[std::size_t(row)]);
            }
            double loss = 0, weight = 0;
            std::vector<int> drawn = canvas;
            for (std::size_t m = 0; m < e.labels.rows.size(); m++) {
                const int i = e.labels.rows[m] - place_of_first;
                if (i < first || i >= end) continue;
                drawn.push_back(i);
                weight = e.labels.weights[m];
                loss += weight * cost(i, token.at(e.labels.tokens[m]), canvas);
            }
            // If nothing is predicted, no weight says k; then the loss is 0 for every k.
            const int k = weight > 0 ? int(std::lround(n / weight)) : 0;
            losses[k][drawn] = loss;
            counts[k][drawn]++;
        }
        // Every k is as likely, so the expected loss is the mean over k. The sets of one k are equally likely; several
        // sets can lead to the same canvas, so each canvas is weighed by the share of its sets.
        double all = 0;
        for (int k = 1; k <= n; k++) {
            const double sets = k == n ? 1 : n;  // of the n <= 3 places
            double sum = 0, times = 0;
            for (const auto& [drawn, loss] : losses[k]) {
                // 3000 / n draws of each k: the number of sets is the rounded share.
                const double own = std::round(sets * counts[k][drawn] * n / 3000.0);
                sum += own * loss, times += own;
            }
            CHECK(times <= sets);
            all += sum / sets;
        }
        bounds += all / n;
    }
    return bounds;
}

}  // namespace

TEST_CASE("diffusion: the table has the probabilities that the numbers below belong to") {
    CHECK(std::exp(-cost(0, 0, {3, 3, 3})) == doctest::Approx(.186323723226).epsilon(1e-11));
    CHECK(std::exp(-cost(1, 1, {0, 3, 3})) == doctest::Approx(.331603979270).epsilon(1e-11));
    CHECK(std::exp(-cost(2, 2, {0, 1, 3})) == doctest::Approx(.218723069595).epsilon(1e-11));
}

TEST_CASE("diffusion: the mean over the number of hidden places is the mean over all orders") {
    double orders = 0;
    std::vector<int> order = {0, 1, 2};
    do {
        Canvas canvas = {3, 3, 3};
        for (int place : order) {
            orders += cost(place, place, canvas) / 6;
            canvas[std::size_t(place)] = place;
        }
    } while (std::next_permutation(order.begin(), order.end()));
    CHECK(std::abs(orders - 3.706918005312) < 1e-12);

    ObjectiveOptions o;
    o.diffusion.canvas = DiffusionRule::drawn;
    const Sentence s{{2, 5, 6, 7, sep}, 1, {}};
    CHECK(std::abs(bound("diffusion", s, o, {{5, 0}, {6, 1}, {7, 2}, {mask, 3}}) - orders) < 1e-12);
}

TEST_CASE("diffusion: with a [SEP] at every place behind the text, the bound counts the places that tell something") {
    ObjectiveOptions o;
    o.diffusion.text_places = 3;
    const std::map<int, int> token = {{5, 0}, {6, 1}, {sep, 2}, {mask, 3}};
    CHECK(std::abs(bound("diffusion", {{2, sep}, 1, {}}, o, token) - 1.421510544220) < 1e-12);
    CHECK(std::abs(bound("diffusion", {{2, 5, sep}, 1, {}}, o, token) - 3.516727857549) < 1e-12);
    CHECK(std::abs(bound("diffusion", {{2, 5, 6, sep}, 1, {}}, o, token) - 3.706918005312) < 1e-12);
}

TEST_CASE(
    "diffusion: in blocks, the bounds of all blocks add up; blocks of one place give the text from left to right") {
    double chain = 0;
    Canvas canvas = {3, 3, 3};
    for (int place = 0; place < 3; place++) {
        chain += cost(place, place, canvas);
        canvas[std::size_t(place)] = place;
    }
    ObjectiveOptions o;
    o.diffusion.text_places = 3;
    const std::map<int, int> token = {{5, 0}, {6, 1}, {sep, 2}, {mask, 3}};
    const auto of_blocks = [&](int block) {
        o.diffusion.block = block;
        return bound("block-diffusion", {{2, 5, 6, sep}, 1, {}}, o, token);
    };
    CHECK(std::abs(chain - 4.304032397972) < 1e-12);
    CHECK(std::abs(of_blocks(1) - chain) < 1e-12);
    CHECK(std::abs(of_blocks(2) - 4.483666202652) < 1e-12);
    CHECK(std::abs(of_blocks(3) - 3.706918005312) < 1e-12);
    CHECK(std::abs(of_blocks(4) - 3.706918005312) < 1e-12);
}
