// SPDX-License-Identifier: MIT
// Tests the stack in the forms that checkpoints need: a narrow embedding, rotated values, several token types.
#include "models/nets/backbone.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/tensor/numbers.h"
#include "models/masks/mask.h"
#include "tests/models/nets/block_kinds.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

BackboneOptions small() {
    BackboneOptions o;
    o.vocabulary = 20, o.width = 8, o.heads = 2, o.inner = 12, o.layers = 2, o.positions = 9, o.deviation = 0.3;
    return o;
}

struct Model {
    Parameters parameters;
    Backbone backbone;
    Arena arena;
    Tape tape;
    TokenRows rows;
    SegmentGraph graph = full_mask({{5, 0}, {3, 0}});

    Model(const BackboneOptions& o, DType type)
        : parameters(type), backbone(parameters, o), arena(Device::cpu, Blocks::loose), tape(arena, type) {
        parameters.allocate(3);
        for (int n = 0; n < 8; n++) rows.push((7 * n + 3) % 20, n % o.types, n < 5 ? n : n - 4, n >= 5);
    }
    Tensor* loss() {
        tape.begin("batch", 1, 1, true);
        Tensor* x = backbone.run(tape, rows, graph);
        const std::vector<double> weights = {0.3, -0.2, 0.5, 0.1, 0.9, 0.4, -0.6, 0.2};
        std::vector<int> targets = {4, 1, 19, 0, 7, 7, 2, 11};
        targets_ = targets;
        Tensor* each = tape.constant("weights", {8}, arithmetic_of(tape.dtype), weights.data());
        return backbone.loss(tape, backbone.head(tape, backbone.finish(tape, x)), targets_, each, "loss");
    }

  private:
    std::vector<int> targets_;
};

void check_gradient(const BackboneOptions& o) {
    Model real(o, DType::f64), imaginary(o, DType::c128);
    Tensor* loss = real.loss();
    real.parameters.start_gradients();
    real.tape.backward(loss);
    real.parameters.finish_gradients();
    for (int direction = 0; direction < 4; direction++) {
        Sequence random(std::uint64_t(direction), "direction");
        double expected = 0;
        auto &p = real.parameters.all(), &q = imaginary.parameters.all();
        for (std::size_t i = 0; i < p.size(); i++)
            for (std::int64_t k = 0; k < p[i].shape.count(); k++) {
                const double d = 2 * random.uniform_double() - 1;
                static_cast<complex*>(q[i].value)[k] = complex(number_at(p[i].view(), k), 1e-30 * d);
                expected += d * number_at(p[i].grad_view(), k);
            }
        const double found = imaginary.loss()->view().as<complex>()->imag() / 1e-30;
        CHECK(std::abs(found - expected) <= 1e-12 * std::max(1.0, std::abs(expected)));
    }
}

}  // namespace

TEST_CASE("backbone: gradients with a narrow embedding, turned values and types against the complex step, 1e-12") {
    for (bool rotary_value : {false, true})
        for (int embedding : {0, 6}) {
            BackboneOptions o = small();
            o.embedding = embedding, o.rotary_value = rotary_value, o.types = 3, o.dropout = o.attention_dropout = 0.2;
            check_gradient(o);
        }
}

TEST_CASE("backbone: gradients of every kind of norm and feed-forward part against the complex step, 1e-12") {
    for (bool pre_norm : {false, true})
        for (BackboneOptions o : with_block_kinds(small())) {
            INFO(o.norm, " ", o.ffn);
            o.pre_norm = pre_norm, o.dropout = o.attention_dropout = 0.2;
            check_gradient(o);
        }
}

TEST_CASE("backbone: a function before each layer sees its input and may change what the layer sees") {
    const Model model(small(), DType::f64);
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, DType::f64);
    tape.begin("before");
    std::vector<int> layers;
    const SegmentGraph causal = causal_mask({{5, 0}, {3, 0}});
    Tensor* plain = model.backbone.run(tape, model.rows, model.graph);
    Tensor* changed = model.backbone.run(tape, model.rows, model.backbone.pass(tape, model.rows, model.graph),
                                         [&](int i, Tensor*& x, Pass& pass) {
                                             CHECK(x->shape == Shape{8, 8});
                                             layers.push_back(i);
                                             pass.graph = &causal;
                                         });
    Tensor* expected = model.backbone.run(tape, model.rows, causal);
    Tensor* first = model.backbone.run(tape, model.rows, model.backbone.pass(tape, model.rows, causal), {}, 1);
    CHECK(layers == std::vector<int>{0, 1});
    bool same = true, other = false, shorter = false;
    for (std::int64_t i = 0; i < expected->shape.count(); i++) {
        const double value = number_at(expected->view(), i);
        same &= number_at(changed->view(), i) == value;
        other |= number_at(plain->view(), i) != value;
        shorter |= number_at(first->view(), i) != value;
    }
    CHECK(same);
    CHECK(other);
    CHECK(shorter);
}

TEST_CASE("backbone: shapes of a narrow embedding, and none of its parameters where E is C") {
    BackboneOptions o = small();
    o.embedding = 6, o.types = 4;
    Parameters narrow, plain, same;
    const Backbone a(narrow, o);
    o.embedding = 8;
    const Backbone b(same, o);
    const Backbone c(plain, small());
    CHECK(narrow.find("embedding.token.weight")->shape == Shape{20, 6});
    CHECK(narrow.find("embedding.type.weight")->shape == Shape{4, 6});
    CHECK(narrow.find("embedding.norm.weight")->shape == Shape{6});
    CHECK(narrow.find("embedding.project.weight")->shape == Shape{8, 6});
    CHECK(narrow.find("head.dense.weight")->shape == Shape{6, 8});
    CHECK(narrow.find("head.norm.bias")->shape == Shape{6});
    CHECK(!same.find("embedding.project.weight"));
    CHECK(!plain.find("embedding.project.weight"));
    CHECK(plain.find("embedding.type.weight")->shape == Shape{2, 8});
}

TEST_CASE("backbone: what it cannot be, and types outside the table") {
    BackboneOptions o = small();
    o.rotary = false, o.rotary_value = true;
    Parameters p;
    CHECK_SAYS(message_of<BadUsage>([&] { Backbone(p, o); }), "rotary_value=true needs rotary=true");
    Model model(small(), DType::f32);
    model.rows.types[3] = 2;
    CHECK_SAYS(message_of<Error>([&] { model.loss(); }), "embedding: type 2 lies outside [0, 2)");
}
