// SPDX-License-Identifier: MIT
// Writing by two stacks: cached == teacher-forced bit for bit, whatever continues what; pairs learned by heart and written
// again.
#include <doctest/doctest.h>

#include <map>

#include "engine/train/adamw.h"
#include "models/seq2seq_decoder.h"
#include "tests/models/small_stacks.h"

using namespace masquerade;
using namespace masquerade::small_stacks;

namespace {

std::vector<double> row_of(const float* logits, std::size_t row) {
    return {logits + row * V, logits + (row + 1) * V};
}

}  // namespace

TEST_CASE("two stacks: cached == teacher-forced logits, bit for bit, for every source of a batch") {
    for (bool pre_norm : {false, true})
        for (int form : {0, 1, 2}) {
            CAPTURE(pre_norm);
            CAPTURE(form);
            Model m(small(pre_norm, form > 0, form == 1));
            const std::vector<Sentence> text = pairs(5, 11);
            const PairBatch batch = find_pair_objective("seq2seq").batch(pointers(text), 0, options());
            const Rows forced = m.logits(batch);
            Seq2SeqDecoder decoder(m.model, 0, 1, longest);
            decoder.read(pointers(text), int(text.size()));
            std::map<int, int> before;  // source -> its row of the step before
            for (int t = 0; t < longest; t++) {
                std::vector<NextToken::Row> rows;
                std::map<int, int> now;
                for (int s = 0; s < int(text.size()); s++) {
                    const std::vector<int>& target = text[std::size_t(s)].target;
                    if (t >= int(target.size())) continue;  // finished sources leave
                    now[s] = int(rows.size());
                    rows.push_back({s, t == 0 ? -1 : before[s], t == 0 ? 2 : target[std::size_t(t) - 1]});
                }
                if (rows.empty()) break;
                const float* logits = decoder.step(rows);
                for (const auto& [s, row] : now)
                    CHECK(row_of(logits, std::size_t(row)) ==
                          forced[std::size_t(batch.target_begin[std::size_t(s)] + t)]);
                before = now;
            }
        }
}

TEST_CASE("two stacks: prefixes branch, die and swap; each has the logits it has alone") {
    Model m(small(false, true));
    const std::vector<Sentence> text = pairs(2, 5);
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
    Seq2SeqDecoder decoder(m.model, 0, 1, longest);
    decoder.read(pointers(text), 5);
    decoder.step({{0, -1, 2}, {1, -1, 2}});
    for (const std::vector<Prefix>& step : steps) {
        std::vector<NextToken::Row> rows;
        for (const Prefix& p : step) rows.push_back({p.source, p.parent, p.tokens.back()});
        const float* logits = decoder.step(rows);
        for (std::size_t i = 0; i < step.size(); i++) {
            Seq2SeqDecoder alone(m.model, 0, 1, longest);
            alone.read({&text[std::size_t(step[i].source)]}, 1);
            const float* last = alone.step({{0, -1, 2}});
            for (int token : step[i].tokens) last = alone.step({{0, 0, token}});
            CHECK(row_of(last, 0) == row_of(logits, i));
        }
    }
    CHECK_THROWS_WITH_AS(decoder.step(std::vector<NextToken::Row>(6, {0, 0, 5})),
                         doctest::Contains("6 prefixes, at most 5"), Error);
}

TEST_CASE("two stacks: two pairs are learned by heart and written again") {
    const std::vector<Sentence> text = pairs(2, 9);
    EncoderDecoderOptions o = small(false, true);
    o.stack.deviation = 0.05;
    Model m(o);
    AdamW optimiser(m.parameters, {0.9, 0.98, 1e-8, 0, 1});
    double last = 0;
    for (int step = 0; step < 150; step++) {
        const PairBatch batch =
            find_pair_objective("seq2seq").batch(pointers(text), std::uint32_t(step), options());
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
    Seq2SeqDecoder decoder(m.model, 0, 1, longest);
    std::vector<SearchSource> sources(2);
    for (SearchSource& s : sources) {
        s.begin = 2;
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
