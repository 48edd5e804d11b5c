// SPDX-License-Identifier: MIT
// Tests block-diffusion on a net: blocks of one token give the likelihood from left to right, one block is diffusion,
// and no hidden token can be read off a later block or off its true copy.
#include <doctest/doctest.h>

#include <cmath>

#include "models/nets/unilm.h"
#include "tests/models/runs/small_pairs.h"

using namespace masquerade;
using namespace masquerade::small_pairs;

namespace {

BackboneOptions small(bool pre_norm, bool rotary) {
    BackboneOptions o;
    o.vocabulary = V, o.width = 16, o.heads = 2, o.inner = 24, o.layers = 3, o.positions = 48, o.deviation = 0.3;
    o.pre_norm = pre_norm, o.rotary = rotary;
    return o;
}

struct Model : Small<UniLm, BackboneOptions> {
    using Small::Small;
    // Returns the logits of every label.
    std::vector<std::vector<double>> logits(const Batch& batch) {
        tape.begin("logits");
        const std::vector<double> all = numbers_of(model.backbone.logits(tape, model.hidden(tape, batch))->view());
        tape.end();
        std::vector<std::vector<double>> rows;
        for (std::size_t at = 0; at < all.size(); at += V)
            rows.emplace_back(all.begin() + std::ptrdiff_t(at), all.begin() + std::ptrdiff_t(at + V));
        return rows;
    }
    double loss(const Batch& batch) {
        tape.begin("loss");
        const double found = number_at(model.loss(tape, batch).total->view(), 0);
        tape.end();
        return found;
    }
};

// Returns pairs or, if `targets` is false, texts.
std::vector<Sentence> some(bool targets, int count, std::uint64_t seed) {
    std::vector<Sentence> text = pairs(count, seed);
    for (Sentence& s : text)
        if (!targets) s.target.clear();
    return text;
}

ObjectiveOptions blocks_of(int block, int longest_text = 12) {
    ObjectiveOptions o = options();
    o.diffusion.block = block;
    o.diffusion.target_places = o.diffusion.text_places = longest_text;
    return o;
}

// -log p(token i of the text | context, tokens before i), by a pass of its own: the row of [MASK] at place i.
double cost_from_left_to_right(Model& m, const Sentence& s, int i) {
    const bool pair = !s.target.empty();
    const Tokens& text = pair ? s.target : s.ids;
    const int context = pair ? int(s.ids.size()) : 1, first = pair ? 0 : 1;
    Example e;
    for (int at = 0; at < context; at++) e.rows.push(s.ids[std::size_t(at)], 0, at, s.name);
    for (int at = 0; at <= i; at++) e.rows.push(at < i ? text[std::size_t(first + at)] : 4, pair, context + at, s.name);
    e.document = {context, i + 1};
    e.labels.push(context + i, text[std::size_t(first + i)]);
    Batch batch = pack({e}, 1);
    batch.graph = unilm_mask(batch.parts);
    return m.loss(batch);
}

}  // namespace

TEST_CASE("block diffusion: with blocks of one token, the loss is the exact likelihood from left to right, 1e-12") {
    const Objective& objective = find_objective("block-diffusion");
    for (bool targets : {true, false})
        for (bool rotary : {true, false}) {
            CAPTURE(targets);
            Model m(small(!rotary, rotary), DType::f64);
            const std::vector<Sentence> text = some(targets, 4, 8);
            double sum = 0;
            int tokens = 0;
            for (const Sentence& s : text) {
                const int n = int(targets ? s.target.size() : s.ids.size() - 1);
                for (int i = 0; i < n; i++) sum += cost_from_left_to_right(m, s, i);
                tokens += n;
            }
            ObjectiveOptions o = blocks_of(1);
            const double found = m.loss(objective.batch(pointers_to(text), 0, o, 16));
            CHECK(std::abs(found - sum / tokens) <= 1e-12 * found);
            for (std::uint64_t seed : {2, 3}) {
                o.seed = seed;
                CHECK(m.loss(objective.batch(pointers_to(text), std::uint32_t(seed), o, 16)) == found);
            }
            o.canvases = 3;
            CHECK(std::abs(m.loss(objective.batch(pointers_to(text), 0, o, 16)) - found) <= 1e-12 * found);
        }
}

TEST_CASE("block diffusion: a block that holds the longest text is diffusion, bit by bit") {
    Model m(small(false, true));
    const std::vector<Sentence> text = some(true, 4, 3), alone = some(false, 4, 3);
    for (const auto* each : {&text, &alone})
        for (int block : {12, 13, 1000})
            for (std::uint32_t step = 0; step < 4; step++) {
                const ObjectiveOptions o = blocks_of(block);
                const Batch one = find_objective("diffusion").batch(pointers_to(*each), step, o, 16),
                            blocks = find_objective("block-diffusion").batch(pointers_to(*each), step, o, 16);
                CHECK(blocks.rows.ids == one.rows.ids);
                CHECK(blocks.rows.document == one.rows.document);
                CHECK(blocks.labels.weights == one.labels.weights);
                CHECK(m.logits(blocks) == m.logits(one));
                CHECK(m.loss(blocks) == m.loss(one));
            }
}

// The rows of a later block and the true copies of a block and of later blocks change; the logits of the block keep
// their bits. What a block may read changes its logits.
TEST_CASE("block diffusion: a block reads the true blocks before it, and neither later ones nor its true copy") {
    Model m(small(false, true));
    const Objective& objective = find_objective("block-diffusion");
    for (int block : {1, 2, 3}) {
        const std::vector<Sentence> text = some(true, 3, 6);
        const Batch batch = objective.batch(pointers_to(text), 1, blocks_of(block));
        const auto before = m.logits(batch);
        int row = 0, hidden_from = 0, read_by = 0, context = 0;
        const auto block_of = [&](int at) {  // -1: the context
            const int place = batch.rows.positions[std::size_t(at)] - context;
            return place < 0 ? -1 : place / block;
        };
        for (const Document& d : batch.parts) {
            context = int(text[std::size_t(&d - batch.parts.data())].ids.size());
            for (int at = row; at < row + d.source + d.target; at++) {
                Batch changed = batch;
                int& id = changed.rows.ids[std::size_t(at)];
                id = id == 7 ? 8 : 7;
                const auto after = m.logits(changed);
                const bool copy = at < row + d.source;  // a row of the context or of a true block
                for (std::size_t q = 0; q < before.size(); q++) {
                    const int asked = batch.labels.rows[q];
                    const bool own = asked >= row && asked < row + d.source + d.target;
                    const int from = block_of(at), to = block_of(asked);
                    const bool reads = own && (copy ? from < to : from == to);
                    CAPTURE(block);
                    CHECK((before[q] != after[q]) == reads);
                    (reads ? read_by : hidden_from)++;
                }
            }
            row += d.source + d.target;
        }
        CHECK(hidden_from > 100);
        CHECK(read_by > 100);
    }
}
