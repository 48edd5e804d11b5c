// SPDX-License-Identifier: MIT
// UniLM: cached == teacher-forced bit for bit, whatever continues what; the gradient of the whole model; learning by heart
// and writing it again; mixtures of objectives; starting from another run's weights.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "engine/tensor/numbers.h"
#include "engine/train/adamw.h"
#include "models/unilm_run.h"

using namespace masquerade;

namespace {

constexpr int V = 40, longest = 8;

BackboneOptions small(bool pre_norm, bool rotary) {
    BackboneOptions o;
    o.vocabulary = V;
    o.width = 16;
    o.heads = 2;
    o.inner = 24;
    o.layers = 3;
    o.positions = 40;
    o.rotary = rotary;
    o.pre_norm = pre_norm;
    o.deviation = 0.3;
    return o;
}

ObjectiveOptions options(int target_start = -1) {
    ObjectiveOptions o;
    o.vocabulary = V;
    o.special = {0, 1, 2, 3, 4};
    o.mask = 4;
    o.target_start = target_start;
    return o;
}

std::vector<Sentence> pairs(int count, std::uint64_t seed) {
    Sequence random(seed, "pairs");
    std::vector<Sentence> all(static_cast<std::size_t>(count));
    for (int i = 0; i < count; i++) {
        Sentence& s = all[std::size_t(i)];
        s.name = i;
        s.ids.push_back(2);
        for (std::uint32_t n = 1 + random.below(9); n > 0; n--) s.ids.push_back(5 + int(random.below(V - 5)));
        s.ids.push_back(3);
        for (std::uint32_t n = 1 + random.below(longest - 2); n > 0; n--)
            s.target.push_back(5 + int(random.below(V - 5)));
        s.target.push_back(3);
    }
    return all;
}

std::vector<const Sentence*> pointers(const std::vector<Sentence>& all) {
    std::vector<const Sentence*> p;
    for (const Sentence& s : all) p.push_back(&s);
    return p;
}

struct Model {
    Parameters parameters;
    UniLm model;
    Arena arena;
    Tape tape;
    explicit Model(const BackboneOptions& o, DType type = DType::f32)
        : parameters(type), model(parameters, o), arena(Device::cpu, false), tape(arena, type) {
        parameters.allocate(7);
    }
    // The logits of every scored row.
    std::vector<std::vector<float>> forced(const ObjectiveBatch& batch) {
        tape.begin("forced");
        const OnHost logits(model.backbone.logits(tape, model.hidden(tape, batch))->view());
        std::vector<std::vector<float>> rows(batch.scored_rows.size());
        for (std::size_t m = 0; m < rows.size(); m++)
            for (int v = 0; v < V; v++) rows[m].push_back(float(logits[std::int64_t(m) * V + v]));
        tape.end();
        return rows;
    }
};

std::vector<float> row_of(const float* logits, std::size_t row) {
    return {logits + row * V, logits + (row + 1) * V};
}

}  // namespace

TEST_CASE("unilm: cached == teacher-forced logits, bit for bit, for every source of a batch") {
    for (bool pre_norm : {false, true})
        for (bool rotary : {false, true})
            for (int start : {-1, 16})
                for (const char* name : {"unilm", "lm-target"}) {
                    CAPTURE(std::string(name));
                    Model m(small(pre_norm, rotary));
                    const std::vector<Sentence> text = pairs(5, 11);
                    const ObjectiveBatch batch =
                        find_objective(name).batch(pointers(text), 0, options(start));
                    const auto forced = m.forced(batch);
                    ReadingOptions reading;
                    reading.causal = std::string(name) == "lm-target";
                    reading.target_start = start;
                    reading.longest = longest;
                    UniLmDecoder decoder(m.model, reading);
                    decoder.read(pointers(text), int(text.size()));
                    std::map<int, int> before;  // source -> its row of the step before
                    for (int t = 0; t < longest; t++) {
                        std::vector<NextToken::Row> rows;
                        std::map<int, int> now;
                        for (int s = 0; s < int(text.size()); s++) {
                            const std::vector<int>& target = text[std::size_t(s)].target;
                            if (t >= int(target.size())) continue;  // finished sources leave
                            now[s] = int(rows.size());
                            rows.push_back(
                                {s, t == 0 ? -1 : before[s], t == 0 ? 3 : target[std::size_t(t) - 1]});
                        }
                        if (rows.empty()) break;
                        const float* logits = decoder.step(rows);
                        for (const auto& [s, row] : now)
                            CHECK(row_of(logits, std::size_t(row)) ==
                                  forced[std::size_t(batch.scored_begin[std::size_t(s)] + t)]);
                        before = now;
                    }
                }
}

TEST_CASE("unilm: prefixes branch, die and swap; each has the logits it has alone") {
    Model m(small(false, true));
    const std::vector<Sentence> text = pairs(2, 5);
    ReadingOptions reading;
    reading.longest = longest;
    // (source, tokens) of every row of every step, with the row that it continues
    struct Prefix {
        int source, parent;
        std::vector<int> tokens;
    };
    const std::vector<std::vector<Prefix>> steps = {
        {{0, 0, {7}}, {0, 0, {8}}, {0, 0, {9}}, {1, 1, {7}}, {1, 1, {10}}},
        {{0, 1, {8, 11}}, {0, 1, {8, 12}}, {0, 1, {8, 13}}, {1, 4, {10, 7}}, {1, 3, {7, 7}}},
        {{0, 2, {8, 13, 5}}, {0, 0, {8, 11, 5}}, {0, 2, {8, 13, 6}}, {1, 4, {7, 7, 9}}, {1, 4, {7, 7, 10}}},
        {{0, 1, {8, 11, 5, 20}}, {0, 2, {8, 13, 6, 21}}, {0, 2, {8, 13, 6, 22}}, {0, 0, {8, 13, 5, 5}}},
    };
    UniLmDecoder decoder(m.model, reading);
    decoder.read(pointers(text), 5);
    decoder.step({{0, -1, 3}, {1, -1, 3}});
    for (const std::vector<Prefix>& step : steps) {
        std::vector<NextToken::Row> rows;
        for (const Prefix& p : step) rows.push_back({p.source, p.parent, p.tokens.back()});
        const float* logits = decoder.step(rows);
        std::vector<std::vector<float>> together;
        for (std::size_t i = 0; i < step.size(); i++) together.push_back(row_of(logits, i));
        for (std::size_t i = 0; i < step.size(); i++) {
            UniLmDecoder alone(m.model, reading);
            alone.read({&text[std::size_t(step[i].source)]}, 1);
            const float* last = alone.step({{0, -1, 3}});
            for (int token : step[i].tokens) last = alone.step({{0, 0, token}});
            CHECK(row_of(last, 0) == together[i]);
        }
    }
    CHECK_THROWS_WITH_AS(decoder.step(std::vector<NextToken::Row>(6, {0, 0, 5})),
                         doctest::Contains("6 prefixes, at most 5"), Error);
}

TEST_CASE("unilm: the gradient of every objective against the complex step") {
    for (const Objective& objective : objectives()) {
        CAPTURE(std::string(objective.name));
        const std::vector<Sentence> text = pairs(3, 2);
        const ObjectiveBatch batch = objective.batch(pointers(text), 1, options(), 16);
        const double smoothing = objective.name == std::string("unilm") ? 0.1 : 0;
        Model real(small(true, true), DType::f64), imaginary(small(true, true), DType::c128);
        real.tape.begin("real");
        Tensor* loss = real.model.loss(real.tape, batch, smoothing).total;
        real.parameters.start_gradients();
        real.tape.backward(loss);
        real.parameters.finish_gradients();
        // along a random direction d: Im L(p + i h d) / h
        Sequence random(3, "direction");
        const View p = real.parameters.values(), g = real.parameters.gradients(),
                   c = imaginary.parameters.values();
        const double h = 1e-40;
        double expected = 0;
        for (std::int64_t i = 0; i < p.count(); i++) {
            const double d = 2 * random.uniform_double() - 1;
            expected += d * g.as<double>()[i];
            c.as<complex>()[i] = complex(p.as<double>()[i], h * d);
        }
        imaginary.tape.begin("complex");
        const View found = imaginary.model.loss(imaginary.tape, batch, smoothing).total->view();
        CHECK(std::abs(found.as<complex>()[0].imag() / h - expected) <=
              1e-11 * std::max(1.0, std::abs(expected)));
    }
}

TEST_CASE("unilm: two pairs are learned by heart and written again") {
    const std::vector<Sentence> text = pairs(2, 9);
    BackboneOptions o = small(false, true);
    o.deviation = 0.05;
    Model m(o);
    AdamW optimiser(m.parameters, {0.9, 0.98, 1e-8, 0, 1});
    double last = 0;
    for (int step = 0; step < 150; step++) {
        const ObjectiveBatch batch =
            find_objective("unilm").batch(pointers(text), std::uint32_t(step), options());
        m.tape.begin("learn", 1, std::uint32_t(step), true);
        Tensor* loss = m.model.loss(m.tape, batch).total;
        m.parameters.start_gradients();
        m.tape.backward(loss);
        m.parameters.finish_gradients();
        optimiser.update(step + 1, 5e-3);
        last = number_at(loss->view(), 0);
        m.tape.end();
    }
    CHECK(last < 0.05);
    ReadingOptions reading;
    reading.longest = longest;
    UniLmDecoder decoder(m.model, reading);
    decoder.read(pointers(text), 8);
    std::vector<SearchSource> sources(2);
    for (SearchSource& s : sources) {
        s.begin = 3;
        s.ends = {3};
    }
    for (int beams : {1, 4}) {
        decoder.read(pointers(text), 8);
        SearchOptions search_options;
        search_options.beams = beams;
        search_options.maximum = longest;
        const auto found = search(decoder, sources, search_options, 1);
        for (std::size_t i = 0; i < text.size(); i++) {
            std::vector<int> written = found[i].at(0).tokens;
            written.push_back(3);
            CHECK(written == text[i].target);
            CHECK(found[i][0].ended);
        }
    }
}

TEST_CASE("unilm: a mixture takes each objective by its weight, the same one at the same step") {
    const ObjectiveMixture mixture = ObjectiveMixture::parse("mlm:2,unilm:1,lm:1");
    std::map<std::string, int> count;
    for (std::uint32_t step = 0; step < 4000; step++) {
        CHECK(&mixture.at(5, step) == &mixture.at(5, step));
        count[mixture.at(5, step).name]++;
    }
    CHECK(count["mlm"] / 4000.0 == doctest::Approx(0.5).epsilon(0.05));
    CHECK(count["unilm"] / 4000.0 == doctest::Approx(0.25).epsilon(0.1));
    CHECK(mixture.has(Objective::pairs));
    CHECK_FALSE(ObjectiveMixture::parse("lm").has(Objective::pairs));
    CHECK_THROWS_AS(ObjectiveMixture::parse("mlm:0"), BadUsage);
    CHECK_THROWS_AS(ObjectiveMixture::parse("mlm:1x"), BadUsage);
    CHECK_THROWS_AS(ObjectiveMixture::parse(""), BadUsage);
    CHECK_THROWS_AS(ObjectiveMixture::parse("mlm,nlm"), BadUsage);
}

TEST_CASE("unilm: the losses of ten steps are what they were, all objectives in turn") {
    // In double: any change of a formula, an initial value, a random number or the order of the data moves them. When that
    // is meant, print them anew.
    const std::vector<double> frozen = {4.45445, 3.7462,  3.81111, 3.98191, 3.50479,
                                        3.52536, 3.36406, 3.56311, 3.61011, 3.64108};
    const std::vector<Sentence> text = pairs(30, 13);
    BackboneOptions o = small(false, true);
    o.deviation = 0.2;
    o.dropout = o.attention_dropout = 0.1;
    Model m(o, DType::f64);
    AdamW optimiser(m.parameters, {0.9, 0.98, 1e-8, 0.01, 1});
    SentenceSource source(text, 1);
    for (std::uint32_t step = 0; step < 10; step++) {
        const Objective& objective = objectives()[step % objectives().size()];
        const ObjectiveBatch batch = objective.batch(source.take(60), step, options(), 16);
        m.tape.begin(batch.bucket, 1, step, true);
        Tensor* loss = m.model.loss(m.tape, batch).total;
        m.parameters.start_gradients();
        m.tape.backward(loss);
        m.parameters.finish_gradients();
        optimiser.update(step + 1, 1e-2);
        const double found = number_at(loss->view(), 0);
        INFO("step ", step, ": ", found);
        CHECK(std::abs(found - frozen[step]) <= 1e-5 * std::abs(frozen[step]));
        m.tape.end();
    }
}
