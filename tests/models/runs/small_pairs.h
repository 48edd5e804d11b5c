// SPDX-License-Identifier: MIT
// Small models of pairs, and checks for every model of pairs: its gradient, and that it learns two pairs by heart.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/base/random.h"
#include "engine/tape/tape.h"
#include "engine/tensor/numbers.h"
#include "engine/train/adamw.h"
#include "models/writing/search.h"
#include "models/tasks/objective.h"

namespace masquerade::small_pairs {

constexpr int V = 40, longest = 8;

inline ObjectiveOptions options(int target_start = -1) {
    ObjectiveOptions o;
    o.vocabulary = V;
    o.special = {0, 1, 2, 3, 4};
    o.mask = 4;
    o.target_start = target_start;
    return o;
}

struct Drawn {
    std::uint32_t source = 9, target = longest - 2;  // the largest numbers of ordinary tokens
    int first_name = 0;
};
// Returns pairs of random tokens. [CLS] is 2, and [SEP] is 3.
inline std::vector<Sentence> pairs(int count, std::uint64_t seed, const Drawn& drawn = {}) {
    Sequence random(seed, "pairs");
    std::vector<Sentence> all(static_cast<std::size_t>(count));
    for (int i = 0; i < count; i++) {
        Sentence& s = all[std::size_t(i)];
        s.name = drawn.first_name + i;
        s.ids.push_back(2);
        for (std::uint32_t n = 1 + random.below(drawn.source); n > 0; n--)
            s.ids.push_back(5 + int(random.below(V - 5)));
        s.ids.push_back(3);
        for (std::uint32_t n = 1 + random.below(drawn.target); n > 0; n--)
            s.target.push_back(5 + int(random.below(V - 5)));
        s.target.push_back(3);
    }
    return all;
}

// A model M(parameters, options), with everything that it needs to run.
template <class M, class Options>
struct Small {
    Parameters parameters;
    M model;
    Arena arena;
    Tape tape;
    explicit Small(const Options& o, DType type = DType::f32)
        : parameters(type), model(parameters, o), arena(Device::cpu, Blocks::loose), tape(arena, type) {
        parameters.allocate(7);
    }
    template <class Batch>
    Tensor* loss_and_gradient(const Batch& batch, double smoothing = 0) {
        Tensor* loss = model.loss(tape, batch, smoothing).total;
        parameters.start_gradients();
        tape.backward(loss);
        parameters.finish_gradients();
        return loss;
    }
};

// Returns the error of the gradient along a random direction d: its difference from the complex step, Im L(p + i h d) /
// h, divided by the larger of 1 and the complex step. If `training` is true, there is dropout.
template <class Model, class Options, class Batch>
double gradient_error(const Options& o, const Batch& batch, double smoothing = 0, bool training = false) {
    Model real(o, DType::f64), imaginary(o, DType::c128);
    real.tape.begin("real", 1, 1, training);
    real.loss_and_gradient(batch, smoothing);
    Sequence random(3, "direction");
    const View p = real.parameters.values(), g = real.parameters.gradients(), c = imaginary.parameters.values();
    const double h = 1e-40;
    double expected = 0;
    for (std::int64_t i = 0; i < p.count(); i++) {
        const double d = 2 * random.uniform_double() - 1;
        expected += d * g.as<double>()[i];
        c.as<complex>()[i] = complex(p.as<double>()[i], h * d);
    }
    imaginary.tape.begin("complex", 1, 1, training);
    const Tensor* loss = imaginary.model.loss(imaginary.tape, batch, smoothing).total;
    const double found = loss->view().as<complex>()[0].imag() / h;
    return std::abs(found - expected) / std::max(1.0, std::abs(expected));
}

// Trains on batch_of(step), and returns the last loss.
template <class Model, class BatchOf>
double learned(Model& m, int steps, BatchOf batch_of) {
    AdamW optimiser(m.parameters, {0.9, 0.98, 1e-8, 0, 1});
    double last = 0;
    for (int step = 0; step < steps; step++) {
        const auto batch = batch_of(std::uint32_t(step));
        m.tape.begin("learn", 1, std::uint32_t(step), true);
        Tensor* loss = m.loss_and_gradient(batch);
        optimiser.update(step + 1, 5e-3);
        last = number_at(loss->view(), 0);
        m.tape.end();
    }
    return last;
}

inline std::vector<float> row_of(const float* logits, std::size_t row) {
    return {logits + row * V, logits + (row + 1) * V};
}

// Several sources write token by token, and some of them leave. Checks that the logits of each step have the bits of
// rows of `forced`. In step t, source s gets token(s, t), or has left if this is negative. Its logits must be row(s, t)
// of `forced`.
template <class Rows, class Token, class Row>
void check_steps(NextToken& decoder, int sources, int steps, Token token, Row row, const Rows& forced) {
    std::map<int, int> before;  // source -> its row in the step before
    for (int t = 0; t < steps; t++) {
        std::vector<NextToken::Row> rows;
        std::map<int, int> now;
        for (int s = 0; s < sources; s++) {
            if (token(s, t) < 0) continue;
            now[s] = int(rows.size());
            rows.push_back({s, t == 0 ? -1 : before[s], token(s, t)});
        }
        if (rows.empty()) break;
        const float* logits = decoder.step(rows);
        for (const auto& [s, place] : now) {
            const typename Rows::value_type found(logits + place * V, logits + (place + 1) * V);
            CHECK(found == forced[std::size_t(row(s, t))]);
        }
        before = now;
    }
}
// Like check_steps(): each source writes its target after `begin`, and leaves at its end.
template <class Rows, class Batch>
void check_targets(NextToken& decoder, int begin, const std::vector<Sentence>& text, const Batch& batch,
                   const Rows& forced) {
    const auto token = [&](int s, int t) {
        const std::vector<int>& target = text[std::size_t(s)].target;
        return t >= int(target.size()) ? -1 : t == 0 ? begin : target[std::size_t(t) - 1];
    };
    check_steps(
        decoder, int(text.size()), longest, token, [&](int s, int t) { return batch.labels.begin[std::size_t(s)] + t; },
        forced);
}

// The prefixes of two sources branch, end and swap places. Checks that each prefix gets the logits that it gets alone
// in a new decoder. make() returns new decoders.
template <class Make>
void check_branches(Make make, int begin, const std::vector<Sentence>& text) {
    // A row of a step: its source, its tokens, and the row of the step before that it continues.
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
    auto decoder = make();
    const std::vector<NextToken::Row> begins = {{0, -1, begin}, {1, -1, begin}};
    for (int time : {1, 2}) {  // nothing is left of what the decoder read and wrote before
        CAPTURE(time);
        for (int most : {2, 7}) {  // fewer rows than below, and more
            decoder.read({&text[1], &text[0]}, most);
            decoder.step(begins);
        }
        decoder.read(pointers_to(text), 5);
        decoder.step(begins);
        for (const std::vector<Prefix>& step : steps) {
            std::vector<NextToken::Row> rows;
            for (const Prefix& prefix : step) rows.push_back({prefix.source, prefix.parent, prefix.tokens.back()});
            const float* logits = decoder.step(rows);
            std::vector<std::vector<float>> together;
            for (std::size_t i = 0; i < step.size(); i++) together.push_back(row_of(logits, i));
            for (std::size_t i = 0; i < step.size(); i++) {
                auto alone = make();
                alone.read({&text[std::size_t(step[i].source)]}, 1);
                const float* last = alone.step({{0, -1, begin}});
                for (int token : step[i].tokens) last = alone.step({{0, 0, token}});
                CHECK(row_of(last, 0) == together[i]);
            }
        }
    }
    CHECK_THROWS_WITH_AS(decoder.step(std::vector<NextToken::Row>(6, {0, 0, 5})),
                         doctest::Contains("6 prefixes, at most 5"), Error);
}

// Checks that a greedy search and a beam search with 4 beams write the targets of these pairs, to their ends. `begin`
// is the token before a target.
template <class Decoder>
void check_written(Decoder& decoder, int begin, const std::vector<Sentence>& text) {
    std::vector<SearchSource> sources(text.size());
    for (SearchSource& s : sources) {
        s.begin = begin;
        s.ends = {3};
    }
    for (int beams : {1, 4}) {
        decoder.read(pointers_to(text), int(text.size()) * 4);
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

}  // namespace masquerade::small_pairs
