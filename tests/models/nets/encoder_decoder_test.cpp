// SPDX-License-Identifier: MIT
// Tests two stacks: one layer, the gradient of the whole model, and that there are no leaks. Also tests that a document
// alone gives the same bits as in any batch, with any memory layout.
#include <doctest/doctest.h>

#include <cmath>

#include "engine/ops/cpu/parallel.h"
#include "tests/models/nets/small_stacks.h"

using namespace masquerade;
using namespace masquerade::small_stacks;

namespace {

int other_than(int id) { return id == 7 ? 8 : 7; }

}  // namespace

TEST_CASE("two stacks: paths; without cross-attention a layer has none") {
    Model m(small(true, true));
    for (const char* path : {"embedding.token.weight", "encoder.layer.1.norm2.bias", "encoder.final_norm.weight",
                             "decoder.layer.2.cross.query.weight", "decoder.layer.2.cross.key_value.bias",
                             "decoder.layer.2.cross.output.weight", "decoder.layer.2.norm_cross.weight",
                             "decoder.final_norm.weight", "head.dense.weight", "head.bias"})
        CHECK(m.parameters.find(path));
    int embeddings = 0;
    for (const Tensor& p : m.parameters.all()) {
        CHECK((p.path.find("cross") == std::string::npos || p.path.rfind("decoder.", 0) == 0));
        embeddings += p.path.find("embedding.token") != std::string::npos;
    }
    CHECK(embeddings == 1);
    Parameters alone;
    const Backbone backbone(alone, small(true, true).stack);
    for (const Tensor& p : alone.all()) CHECK(p.path.find("cross") == std::string::npos);
}

TEST_CASE("two stacks: the gradient of every objective against the complex step") {
    for (const Objective& objective : objectives(true))
        for (bool pre_norm : {false, true})
            // Absolute positions, rotary positions, rotary positions except in the cross-attention.
            for (int form : {0, 1, 2}) {
                CAPTURE(std::string(objective.name));
                CAPTURE(pre_norm);
                CAPTURE(form);
                const std::vector<Sentence> text = pairs(3, 2);
                ObjectiveOptions by = options();
                if (objective.has(Objective::counts)) by.vocabulary = V - 16;  // the other ids are numbers
                const Batch batch = objective.batch(pointers_to(text), 1, by, 16);
                const EncoderDecoderOptions o = small(pre_norm, form > 0, form == 1);
                CHECK(gradient_error<Model>(o, batch) <= 1e-11);
            }
}

TEST_CASE("two stacks: the layer is the formula of the paper, post-LN and pre-LN") {
    const std::vector<Sentence> text = pairs(2, 6);
    const Batch batch = find_objective("seq2seq", true).batch(pointers_to(text), 0, options());
    for (bool pre_norm : {false, true}) {
        CAPTURE(pre_norm);
        Model m(small(pre_norm, false), DType::f64);
        Sequence random(4, "parameters");  // changes the parameters, because all norms start equal
        const View p = m.parameters.values();
        for (std::int64_t i = 0; i < p.count(); i++) p.as<double>()[i] += 0.4 * (2 * random.uniform_double() - 1);
        m.tape.begin("layer");
        const Block& block = m.model.decoder.layers[1];
        auto linear = [&](const std::string& name) {
            Linear l;
            l.weight = m.parameters.find(block.path + "." + name + ".weight");
            l.bias = m.parameters.find(block.path + "." + name + ".bias");
            return l;
        };
        auto norm_of = [&](const std::string& name) {
            LayerNorm n;
            n.weight = linear(name).weight, n.bias = linear(name).bias, n.eps = block.shape.eps;
            return n;
        };
        const LayerNorm norm1 = norm_of("norm1"), norm2 = norm_of("norm2"), norm_cross = norm_of("norm_cross");
        const auto read = m.model.encode(m.tape, batch.source, batch.source_graph);
        Tensor* const e = read.x;
        const Pass pass = m.model.decoder_pass(m.tape, batch.rows, batch.graph, batch.source, read, batch.cross_graph);
        Tensor* x = m.model.decoder.embed(m.tape, batch.rows);
        const Rows found = m.rows(block(m.tape, x, pass));
        auto looks = [&](const std::string& name, Tensor* from, Tensor* at, const SegmentGraph& graph) {
            Tensor* q = linear(name + ".query")(m.tape, from, "q");
            Tensor* kv = linear(name + ".key_value")(m.tape, at, "kv");
            Tensor* a = attention(m.tape, q, {kv}, graph, 2, 0, pass.rows, "a");
            return linear(name + ".output")(m.tape, a, "out");
        };
        auto feeds = [&](Tensor* h) {
            return linear("ffn.down")(m.tape, gelu(m.tape, linear("ffn.up")(m.tape, h, "up"), GeluKind::erf, "gelu"),
                                      "down");
        };
        auto norm = [&](const LayerNorm& n, Tensor* h) { return n(m.tape, h, "norm"); };
        auto plus = [&](Tensor* a, Tensor* b) { return add(m.tape, a, b, "sum"); };
        const SegmentGraph &self = batch.graph, &over = batch.cross_graph;
        if (pre_norm) {
            Tensor* h = norm(norm1, x);
            x = plus(x, looks("attention", h, h, self));
            x = plus(x, looks("cross", norm(norm_cross, x), e, over));
            x = plus(x, feeds(norm(norm2, x)));
        } else {
            x = norm(norm1, plus(x, looks("attention", x, x, self)));
            x = norm(norm_cross, plus(x, looks("cross", x, e, over)));
            x = norm(norm2, plus(x, feeds(x)));
        }
        const Rows expected = m.rows(x);
        REQUIRE(found.size() == expected.size());
        double worst = 0;
        for (std::size_t r = 0; r < found.size(); r++)
            for (std::size_t c = 0; c < found[r].size(); c++)
                worst = std::max(worst, std::abs(found[r][c] - expected[r][c]));
        CHECK(worst < 1e-13);
        m.tape.end();
    }
}

// In two layers, information can travel two steps.
TEST_CASE("two stacks: under a mask in words a row hears what the words let through, and nothing else") {
    struct {
        const char* words;
        int layers;
        bool (*source)(int place, int length);
        int back;  // number of earlier decoder inputs on which a row depends
    } rows[] = {{"", 2, [](int, int) { return true; }, longest},
                {"A full window=1; B causal window=1 sees A[0]", 1, [](int p, int) { return p <= 1; }, 1},
                {"A full window=1; B causal window=1 sees A[0]", 2, [](int p, int) { return p <= 2; }, 2},
                {"A none; B causal | layers 1: B causal sees A[1:3], A[-1]", 2,
                 [](int p, int n) { return p == 1 || p == 2 || p == n - 1; }, longest},
                {"A full window=1; B none sees A | layers 1: B none", 2, [](int, int) { return true; }, 0},
                {"A full; B causal", 2, [](int, int) { return false; }, longest}};
    for (const auto& row : rows) {
        CAPTURE(std::string(row.words));
        EncoderDecoderOptions o = small(false, true);
        o.stack.layers = o.decoder_layers = row.layers;
        Model m(o);
        ObjectiveOptions by = options();
        by.encoder_masks = std::make_shared<const LayerMasks>(row.words, row.layers, StackRows::encoder);
        by.masks = std::make_shared<const LayerMasks>(row.words, row.layers, StackRows::decoder);
        const Objective& objective = find_objective("seq2seq", true);
        const std::vector<Sentence> text = pairs(3, 5);
        const Batch batch = objective.batch(pointers_to(text), 0, by);
        const Rows before = m.logits(batch);
        for (std::size_t d = 0; d < text.size(); d++)
            for (int place = 0; place < int(text[d].size()); place++) {
                std::vector<Sentence> changed = text;
                const int n = int(text[d].ids.size()), t = place - n;  // t: place in the target; negative in the source
                int& id = t < 0 ? changed[d].ids[std::size_t(place)] : changed[d].target[std::size_t(t)];
                id = other_than(id);
                Batch other = objective.batch(pointers_to(changed), 0, by);
                // Place 0 is [CLS], which is also an input of the decoder; only the encoder's input changes here.
                if (place == 0) other.rows = batch.rows;
                const Rows after = m.logits(other);
                for (std::size_t e = 0; e < text.size(); e++)
                    for (int r = batch.labels.begin[e]; r < batch.labels.begin[e + 1]; r++) {
                        // The number of rows from the row that gets this token as its input to row r.
                        const int back = r - batch.labels.begin[e] - (t + 1);
                        const bool hears = e == d && (t < 0 ? row.source(place, n) : back >= 0 && back <= row.back);
                        CHECK((before[std::size_t(r)] != after[std::size_t(r)]) == hears);
                    }
            }
    }
}

TEST_CASE("two stacks: words that say the usual masks change no bit, and their gradient is that of the complex step") {
    const std::vector<Sentence> text = pairs(3, 2);
    ObjectiveOptions by = options();
    auto batch = [&](const char* words) {
        by.encoder_masks = std::make_shared<const LayerMasks>(words, 2, StackRows::encoder);
        by.masks = std::make_shared<const LayerMasks>(words, 3, StackRows::decoder);
        return find_objective("seq2seq", true).batch(pointers_to(text), 1, by, 16);
    };
    Model m(small(true, true));
    const Batch usual = find_objective("seq2seq", true).batch(pointers_to(text), 1, options(), 16);
    CHECK(m.logits(batch("A full; B causal sees A")) == m.logits(usual));
    CHECK(gradient_error<Model>(small(true, true),
                                batch("A causal window=2; B causal | layers 0: B causal window=1 sees A[0], A[2:]")) <=
          1e-11);
}

TEST_CASE("two stacks: mass: no row sees what it is asked for; the rest of the sentence is heard") {
    ObjectiveOptions o = options();
    o.kept = 0;  // a hidden token that is kept shows its answer by design
    Model m(small(false, true));
    const Objective& mass = find_objective("mass", true);
    const std::vector<Sentence> text = pairs(3, 12);
    const Batch batch = mass.batch(pointers_to(text), 3, o);
    const Rows before = m.logits(batch);
    for (std::size_t d = 0; d < text.size(); d++)
        for (int place = 1; place + 1 < int(text[d].ids.size()); place++) {
            std::vector<Sentence> changed = text;
            int& id = changed[d].ids[std::size_t(place)];
            id = other_than(id);
            const Batch other = mass.batch(pointers_to(changed), 3, o);
            REQUIRE(other.rows.positions == batch.rows.positions);
            const Rows after = m.logits(other);
            const int first = batch.rows.positions[std::size_t(batch.labels.begin[d])] + 1;
            const int length = batch.labels.begin[d + 1] - batch.labels.begin[d];
            for (std::size_t e = 0; e < text.size(); e++)
                for (int row = batch.labels.begin[e]; row < batch.labels.begin[e + 1]; row++) {
                    const bool hidden = place >= first && place < first + length;
                    const bool hears = e == d && (!hidden || batch.rows.positions[std::size_t(row)] >= place);
                    CHECK((before[std::size_t(row)] != after[std::size_t(row)]) == hears);
                }
        }
}

// Rotary positions give the distance of two tokens. In one stack, moving all tokens changes nothing. In two stacks with
// rotary cross-attention, this holds only if both move together.

TEST_CASE("two stacks: the cross-attention knows where a span stands") {
    const std::vector<Sentence> text = pairs(1, 31);
    for (bool rotary_cross : {false, true}) {
        Model m(small(false, true, rotary_cross), DType::f64);
        Batch batch = find_objective("mass", true).batch(pointers_to(text), 0, options());
        const Rows before = m.logits(batch);
        for (int& position : batch.rows.positions) position += 3;
        const Rows after = m.logits(batch);
        double moved = 0;
        for (std::size_t r = 0; r < before.size(); r++)
            for (std::size_t v = 0; v < V; v++) moved = std::max(moved, std::abs(before[r][v] - after[r][v]));
        if (rotary_cross)
            CHECK(moved > 1e-3);
        else
            CHECK(moved < 1e-12);
    }
}

TEST_CASE("two stacks: a document alone == in any batch, padded or not, at any number of threads") {
    const int threads_before = threads();
    for (const Objective& objective : objectives(true)) {
        CAPTURE(std::string(objective.name));
        Model m(small(false, true));
        const std::vector<Sentence> text = pairs(20, 3);
        const Batch all = objective.batch(pointers_to(text), 2, options(), 32);
        set_threads(1);
        const Rows together = m.logits(all);
        set_threads(3);
        CHECK(m.logits(all) == together);
        for (std::size_t d = 0; d < text.size(); d++) {
            const Rows alone = m.logits(objective.batch({&text[d]}, 2, options()));
            REQUIRE(int(alone.size()) == all.labels.begin[d + 1] - all.labels.begin[d]);
            for (std::size_t row = 0; row < alone.size(); row++)
                CHECK(alone[row] == together[std::size_t(all.labels.begin[d]) + row]);
        }
    }
    set_threads(threads_before);
}

TEST_CASE("two stacks: with dropout, planned memory and recomputed layers change no bit of loss and gradients") {
    EncoderDecoderOptions o = small(false, true);
    o.stack.dropout = o.stack.attention_dropout = 0.2;
    std::vector<std::vector<float>> seen;
    for (bool planned : {false, true})
        for (const char* recomputed : {"", "encoder.layer.*", "decoder.layer.*"}) {
            Parameters parameters;
            const EncoderDecoder model(parameters, o);
            parameters.allocate(7);
            Arena arena(Device::cpu, planned ? Blocks::planned : Blocks::loose);
            Tape tape(arena, DType::f32);
            if (*recomputed) tape.recompute(recomputed);
            std::vector<float> bits;
            for (std::uint32_t step = 0; step < 3; step++) {
                const std::vector<Sentence> text = pairs(4, 17);
                const Batch batch = find_objective("mass", true).batch(pointers_to(text), 0, options(), 32);
                tape.begin(batch.bucket, 1, step, true);
                Tensor* loss = model.loss(tape, batch).total;
                parameters.start_gradients();
                tape.backward(loss);
                parameters.finish_gradients();
                bits.push_back(float(number_at(loss->view(), 0)));
                const View g = parameters.gradients();
                bits.insert(bits.end(), g.as<float>(), g.as<float>() + g.count());
                tape.end();
            }
            CHECK(bits[0] != bits[bits.size() / 3]);  // another step drops other numbers
            seen.push_back(std::move(bits));
        }
    for (const std::vector<float>& bits : seen) CHECK(bits == seen[0]);
}

TEST_CASE("two stacks: a layer with cross-attention says what its pass lacks") {
    Model m(small(false, true));
    const std::vector<Sentence> text = pairs(1, 4);
    const Batch batch = find_objective("seq2seq", true).batch(pointers_to(text), 0, options());
    m.tape.begin("lacking");
    const Pass pass = m.model.decoder.pass(m.tape, batch.rows, batch.graph);
    Tensor* x = m.model.decoder.embed(m.tape, batch.rows);
    CHECK_THROWS_WITH_AS(m.model.decoder.layers[0](m.tape, x, pass),
                         doctest::Contains("decoder.layer.0: a layer with cross-attention"), Error);
    m.tape.end();
}

// Changes one token of a sentence at a time, and compares the logits of all labels.
TEST_CASE("two stacks: diffusion reads the source and the visible tokens, and not what it predicts") {
    const Objective& objective = find_objective("diffusion", true);
    ObjectiveOptions by = options();
    by.diffusion.target_places = longest;
    for (int canvases : {1, 3}) {
        by.canvases = canvases;
        Model m(small(false, true));
        const std::vector<Sentence> text = pairs(3, 5);
        const Batch batch = objective.batch(pointers_to(text), 1, by);
        CHECK(batch.shared.size() == text.size());  // the encoder reads each source once
        CHECK(batch.labels.size() < batch.rows.count());
        const Rows before = m.logits(batch), encoded = m.encoded(batch);
        REQUIRE(int(before.size()) == batch.labels.size());
        int read = 0, not_read = 0;
        for (std::size_t d = 0; d < text.size(); d++)
            for (int place = 1; place < int(text[d].size()) - 1; place++) {
                std::vector<Sentence> changed = text;
                const int n = int(text[d].ids.size()), t = place - n;  // t: place in the target; negative in the source
                int& id = t < 0 ? changed[d].ids[std::size_t(place)] : changed[d].target[std::size_t(t)];
                if (id == 3) continue;  // [SEP] says where the target ends
                id = other_than(id);
                const Batch other = objective.batch(pointers_to(changed), 1, by);
                REQUIRE(other.labels.rows == batch.labels.rows);
                if (t >= 0) CHECK(m.encoded(other) == encoded);
                const Rows after = m.logits(other);
                int row = 0;
                for (int document = 0; document < batch.documents; document++) {
                    const bool own = document / canvases == int(d);
                    const bool visible =
                        own && (t < 0 || other.rows.ids[std::size_t(row + t)] != batch.rows.ids[std::size_t(row + t)]);
                    for (int q = batch.labels.begin[std::size_t(document)];
                         q < batch.labels.begin[std::size_t(document) + 1]; q++) {
                        CHECK((before[std::size_t(q)] != after[std::size_t(q)]) == visible);
                        (visible ? read : not_read)++;
                    }
                    row += batch.parts[std::size_t(document)].target;
                }
            }
        CHECK(read > 50);
        CHECK(not_read > 50);
        // A sentence alone has the bits that it has in the batch.
        for (std::size_t d = 0; d < text.size(); d++) {
            const Rows alone = m.logits(objective.batch({&text[d]}, 1, by));
            const auto first = before.begin() + batch.labels.begin[d * std::size_t(canvases)];
            CHECK(std::equal(alone.begin(), alone.end(), first));
        }
    }
}
