// SPDX-License-Identifier: MIT
// Tests that the loss of every objective of tokens is the mean over the predicted tokens, or the sum by their weights,
// for any padding of the batch and with label smoothing.
#include <doctest/doctest.h>

#include <cmath>

#include "models/nets/unilm.h"
#include "tests/models/nets/small_stacks.h"

using namespace masquerade;
using namespace masquerade::small_pairs;

namespace {

struct OneStack : Small<UniLm, BackboneOptions> {
    using Small::Small;
};

// Compares the loss with the mean of (1 - s) (-log p of the token) + s (the mean of -log p of all tokens), where s is
// the smoothing. Also compares the mean of -log p of the tokens alone.
template <class Model, class Options>
void check_loss(const Objective& objective, const Options& o) {
    const std::vector<Sentence> text = pairs(5, 4);
    int tokens_of_targets = 0;  // with [SEP], if the objective predicts it
    for (const Sentence& s : text) tokens_of_targets += int(s.target.size()) - objective.has(Objective::streams);
    for (double smoothing : {0.0, 0.1})
        for (int pad : {1, 16}) {
            CAPTURE(std::string(objective.name));
            CAPTURE(pad);
            Model m(o, DType::f64);
            ObjectiveOptions by = options();
            if (objective.has(Objective::counts)) by.vocabulary = V - 16;  // the other ids are numbers
            const Batch batch = objective.batch(pointers_to(text), 3, by, pad);
            m.tape.begin("logits");
            const std::vector<double> z =
                numbers_of(m.model.head_stack().logits(m.tape, m.model.hidden(m.tape, batch))->view());
            m.tape.end();
            double sum = 0;
            std::vector<double> each;
            for (int q = 0; q < batch.labels.count; q++) {
                const double* row = &z[std::size_t(q) * V];
                double total = 0, all = 0;
                for (int v = 0; v < V; v++) total += std::exp(row[v]);
                for (int v = 0; v < V; v++) all += (std::log(total) - row[v]) / V;
                each.push_back(std::log(total) - row[batch.labels.tokens[std::size_t(q)]]);
                sum += batch.labels.weights[std::size_t(q)] * ((1 - smoothing) * each.back() + smoothing * all);
            }
            m.tape.begin("loss");
            const double found = number_at(m.model.loss(m.tape, batch, smoothing).total->view(), 0);
            const int divisor = objective.has(Objective::bound) ? tokens_of_targets : batch.labels.count;
            CHECK(std::abs(found - sum / divisor) <= 1e-12 * sum);
            const auto losses = m.model.losses(m.tape, batch);
            CHECK(losses.count == int(each.size()));
            for (std::size_t q = 0; q < each.size(); q++)
                CHECK(std::abs(number_at(losses.each->view(), std::int64_t(q)) - each[q]) <= 1e-12 * (1 + each[q]));
            m.tape.end();
        }
}

}  // namespace

TEST_CASE("loss weights: every objective of tokens costs the mean over what it asks") {
    BackboneOptions one;
    one.vocabulary = V, one.width = 16, one.heads = 2, one.inner = 24, one.layers = 2, one.positions = 40,
    one.deviation = 0.3;
    for (const Objective& objective : objectives(false)) check_loss<OneStack>(objective, one);
    for (const Objective& objective : objectives(true))
        check_loss<small_stacks::Model>(objective, small_stacks::small(false, true));
}
