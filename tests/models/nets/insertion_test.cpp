// SPDX-License-Identifier: MIT
// Tests the Insertion Transformer: its gradient in every variant; that p(c,l) sums to 1 and is the probability that the
// loss uses; that a canvas alone gives the same as in any batch; that caching the encoder's keys changes no bit; and
// that the model learns.
#include <doctest/doctest.h>

#include <cmath>

#include "engine/nn/attention/attention.h"
#include "models/writing/insertion_decoder.h"
#include "tests/models/nets/small_stacks.h"

using namespace masquerade;
using namespace masquerade::small_stacks;

namespace {

using Inserter = Small<InsertionTransformer, InsertionOptions>;

struct Named {
    const char* objective;
    InsertionForm form;
};
const Named forms[] = {{"insertion", InsertionForm::two_stacks},
                       {"insertion-one-stack", InsertionForm::one_stack},
                       {"kermit", InsertionForm::either_side}};
const Objective& find(const char* name) { return find_objective(name, insertion_objectives()); }

ObjectiveOptions inserting() {
    ObjectiveOptions o = options();
    o.insertion.begin = 2;
    o.insertion.end = 3;
    return o;
}

// Returns the 8 combinations of joint, contextual bias and mixture in the paper's table, and two variants with a
// separate matrix for slots.
std::vector<InsertionOptions> variants(bool one_stack, bool pre_norm = false) {
    std::vector<InsertionOptions> all;
    for (int i = 0; i < 10; i++) {
        InsertionOptions o;
        o.stacks = small(pre_norm, true);
        o.one_stack = one_stack;
        o.joint = i & 1;
        o.contextual_bias = i & 2;
        o.mixture = i & 4 ? 3 : 1;
        o.projection = i < 8;
        all.push_back(o);
    }
    return all;
}

// log p(c,l) and log p(c|l) for every word and slot of an example's canvas, computed by plain loops over all logits.
struct Whole {
    std::vector<std::vector<double>> both, content;  // (slots)(V)
    std::vector<double> place;
};
Whole whole(Inserter& m, const Batch& b) {
    m.tape.begin("whole");
    const InsertionHead::Slots s = m.model.head->slots(m.tape, m.model.rows(m.tape, b), b);
    const auto rows = [](Tensor* t) { return t ? Model::rows(t) : Rows(); };
    const Rows z = rows(m.model.head->logits(m.tape, s)), bias = rows(s.bias), mix = rows(s.mix);
    std::vector<double> place;
    for (int l = 0; s.place && l < b.labels.count; l++) place.push_back(number_at(s.place->view(), l));
    m.tape.end();
    const InsertionOptions& o = m.model.options;
    const std::size_t K = std::size_t(o.mixture), M = std::size_t(b.labels.count);
    const auto logit = [&](std::size_t l, std::size_t k, int c) {
        return z[l * K + k][std::size_t(c)] + (bias.empty() ? 0 : bias[0][std::size_t(c)]);
    };
    const auto pi = [&](std::size_t l, std::size_t k) {
        if (mix.empty()) return 1.0;
        const std::vector<double>& u = mix[o.joint ? 0 : l];
        double sum = 0;
        for (double each : u) sum += std::exp(each);
        return std::exp(u[k]) / sum;
    };
    std::vector<std::vector<double>> of(M, std::vector<double>(K, 0));
    std::vector<double> all(K, 0);
    double places = 0;
    for (std::size_t l = 0; l < M; l++) {
        for (std::size_t k = 0; k < K; k++)
            for (int c = 0; c < V; c++) of[l][k] += std::exp(logit(l, k, c));
        for (std::size_t k = 0; k < K; k++) all[k] += of[l][k];
        if (!place.empty()) places += std::exp(place[l]);
    }
    Whole w;
    for (std::size_t l = 0; l < M; l++) {
        std::vector<double> p(V, 0);
        double sum = 0;
        for (int c = 0; c < V; c++) {
            for (std::size_t k = 0; k < K; k++)
                p[std::size_t(c)] += pi(l, k) * std::exp(logit(l, k, c)) / (o.joint ? all[k] : of[l][k]);
            if (!o.joint) p[std::size_t(c)] *= std::exp(place[l]) / places;
            sum += p[std::size_t(c)];
        }
        w.place.push_back(std::log(sum));
        std::vector<double> both, content;
        for (double each : p) both.push_back(std::log(each)), content.push_back(std::log(each / sum));
        w.both.push_back(both);
        w.content.push_back(content);
    }
    return w;
}

}  // namespace

TEST_CASE("insertion: the gradient of every variant and form against the complex step") {
    for (const Named& form : forms)
        for (bool pre_norm : {false, true})
            for (const InsertionOptions& o : variants(form.form != InsertionForm::two_stacks, pre_norm)) {
                INFO(std::string(form.objective), " joint ", o.joint, " bias ", o.contextual_bias, " mixture ",
                     o.mixture, " projection ", o.projection);
                const std::vector<Sentence> text = pairs(3, 2);
                ObjectiveOptions by = inserting();
                by.canvases = 2;
                CHECK(gradient_error<Inserter>(o, find(form.objective).batch(pointers_to(text), 1, by, 16)) <= 1e-11);
                if (form.form == InsertionForm::either_side) continue;
                by.insertion.left_to_right = true;
                CHECK(gradient_error<Inserter>(o, find(form.objective).batch(pointers_to(text), 1, by, 16)) <= 1e-11);
            }
}

TEST_CASE("insertion: p(c,l) sums to 1, the loss is its cross-entropy, and a decoder scores slots by it") {
    for (const Named& form : forms)
        for (const InsertionOptions& o : variants(form.form != InsertionForm::two_stacks)) {
            INFO(std::string(form.objective), " joint ", o.joint, " bias ", o.contextual_bias, " mixture ", o.mixture,
                 " projection ", o.projection);
            Inserter m(o, DType::f64);
            const std::vector<Sentence> text = pairs(4, 5);
            const ObjectiveOptions by = inserting();
            std::vector<int> forbidden = {0, 1, 2, 3, 4, 17};
            InsertionDecoder decoder(m.model, find(form.objective), form.form, by, forbidden);
            decoder.read(pointers_to(text));
            double mean = 0;
            for (std::size_t i = 0; i < text.size(); i++) {
                const Batch b = find(form.objective).batch({&text[i]}, 3, by);
                const Whole w = whole(m, b);
                double sum = 0, loss = 0;
                for (const auto& slot : w.both)
                    for (double each : slot) sum += std::exp(each);
                CHECK(sum == doctest::Approx(1).epsilon(1e-12));
                const Choices& c = b.labels.choices;
                for (int l = 0; l < b.labels.count; l++)
                    for (int j = c.begin[std::size_t(l)]; j < c.begin[std::size_t(l) + 1]; j++)
                        loss -=
                            c.shares[std::size_t(j)] * w.both[std::size_t(l)][std::size_t(c.tokens[std::size_t(j)])];
                m.tape.begin("loss");
                CHECK(number_at(m.model.loss(m.tape, b).total->view(), 0) == doctest::Approx(loss).epsilon(1e-12));
                m.tape.end();
                mean += loss / double(text.size());
                // in this form, the canvas also has slots of the source
                if (form.form == InsertionForm::either_side) continue;
                const int first = form.form == InsertionForm::one_stack ? int(text[i].ids.size()) : 0;
                const Canvas canvas{int(i), {b.rows.ids.begin() + first + 1, b.rows.ids.end() - 1}};
                const std::vector<SlotScore> scores = decoder.score({&canvas}).at(0);
                REQUIRE(scores.size() == w.both.size());
                for (std::size_t l = 0; l < scores.size(); l++) {
                    int best = -1;
                    for (int word = 0; word < V; word++)
                        if (std::count(forbidden.begin(), forbidden.end(), word) == 0 &&
                            (best < 0 || w.content[l][std::size_t(word)] > w.content[l][std::size_t(best)]))
                            best = word;
                    CHECK(scores[l].token == best);
                    CHECK(scores[l].content == doctest::Approx(w.content[l][std::size_t(best)]).epsilon(1e-11));
                    CHECK(scores[l].end == doctest::Approx(w.content[l][3]).epsilon(1e-11));
                    CHECK(scores[l].place == doctest::Approx(w.place[l]).epsilon(1e-11));
                }
            }
            m.tape.begin("all");
            const Batch all = find(form.objective).batch(pointers_to(text), 3, by, 32);
            CHECK(number_at(m.model.loss(m.tape, all).total->view(), 0) == doctest::Approx(mean).epsilon(1e-12));
            m.tape.end();
        }
}

TEST_CASE("insertion: a canvas alone == in any batch, padded or not") {
    for (const Named& form : forms)
        for (const InsertionOptions& o : variants(form.form != InsertionForm::two_stacks)) {
            INFO(std::string(form.objective), " joint ", o.joint, " bias ", o.contextual_bias, " mixture ", o.mixture);
            Inserter m(o);
            const std::vector<Sentence> text = pairs(9, 3);
            const Batch all = find(form.objective).batch(pointers_to(text), 2, inserting(), 32);
            const auto losses = [&](const Batch& b) {
                m.tape.begin("losses");
                const TargetNet::Losses found = m.model.losses(m.tape, b);
                std::vector<double> each;
                for (int d = 0; d < found.count; d++) each.push_back(number_at(found.each->view(), d));
                m.tape.end();
                return each;
            };
            const std::vector<double> together = losses(all);
            REQUIRE(together.size() == text.size());
            for (std::size_t d = 0; d < text.size(); d++)
                CHECK(losses(find(form.objective).batch({&text[d]}, 2, inserting()))[0] == together[d]);
        }
}

TEST_CASE(
    "insertion: every attention that honours the masks trains and writes: kept keys of the encoder change nothing") {
    for (const AttentionKind& kind : attention_kinds()) {
        INFO(std::string(kind.name));
        InsertionOptions o;
        o.stacks = small(true, kind.rotates);
        o.stacks.stack.attention = kind.name;
        Inserter m(o, DType::f64);
        const std::vector<Sentence> text = pairs(5, 6);
        const Objective& objective = find("insertion");
        const Batch b = objective.batch(pointers_to(text), 4, inserting());
        try {
            m.tape.begin("rows");
            m.model.rows(m.tape, b);
            m.tape.end();
        } catch (const BadUsage& refusal) {
            CHECK(std::string(refusal.what()).find("does not support this mask") != std::string::npos);
            continue;
        }
        InsertionDecoder decoder(m.model, objective, InsertionForm::two_stacks, inserting(), {0, 1, 2, 3, 4});
        decoder.read(pointers_to(text));
        std::vector<Canvas> canvases;
        std::vector<const Canvas*> some;
        int row = 0;
        for (std::size_t i = 0; i < text.size(); i++) {
            const int n = b.parts[i].target;
            canvases.push_back({int(i), {b.rows.ids.begin() + row + 1, b.rows.ids.begin() + row + n - 1}});
            row += n;
        }
        for (std::size_t i : {0, 2, 3}) some.push_back(&canvases[i]);  // the other canvases are finished
        const auto scores = decoder.score(some);
        for (std::size_t i = 0; i < some.size(); i++) {
            const Whole w = whole(m, objective.batch({&text[std::size_t(some[i]->source)]}, 4, inserting()));
            for (std::size_t l = 0; l < scores[i].size(); l++)
                CHECK(scores[i][l].end == doctest::Approx(w.content[l][3]).epsilon(1e-11));
        }
    }
}

TEST_CASE("insertion: it learns pairs by heart, and writes them greedily, in parallel and from a part of them") {
    for (const Named& form : forms) {
        INFO(std::string(form.objective));
        InsertionOptions o = variants(form.form != InsertionForm::two_stacks)[0];
        Inserter m(o);
        const std::vector<Sentence> text = pairs(3, 21);
        ObjectiveOptions by = inserting();
        by.insertion.tau = 0.25;
        by.canvases = 4;
        const Objective& objective = find(form.objective);
        const double last = learned(m, form.form == InsertionForm::either_side ? 1500 : 700,
                                    [&](std::uint32_t step) { return objective.batch(pointers_to(text), step, by); });
        CHECK(last < 2.5);  // the entropies of the order and of the place remain
        InsertionDecoder decoder(m.model, objective, form.form, by, {0, 1, 2, 3, 4});
        decoder.read(pointers_to(text));
        for (bool parallel : {false, true})
            for (bool begun : {false, true}) {
                CanvasOptions how;
                how.parallel = parallel;
                std::vector<Canvas> starts;
                for (int i = 0; i < 3; i++) starts.push_back({i, {}});
                for (int i = 0; i < 3 && begun; i++)
                    starts[std::size_t(i)].tokens = {text[std::size_t(i)].target.end() - 2,
                                                     text[std::size_t(i)].target.end() - 1};
                const std::vector<Written> all = write_canvases(decoder, starts, how);
                for (std::size_t i = 0; i < text.size(); i++) {
                    std::vector<int> expected(text[i].target.begin(), text[i].target.end() - 1);
                    INFO("last ", last, " parallel ", parallel, " begun ", begun, " ", all[i].tokens.size(), " of ",
                         expected.size());
                    CHECK(all[i].tokens == expected);
                    CHECK(all[i].ended);
                    if (parallel) CHECK(all[i].rounds <= fewest_rounds(int(expected.size())) + 1);
                }
            }
    }
}
