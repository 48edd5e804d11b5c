// SPDX-License-Identifier: MIT
// A Transformer language model that is trained only with the free functions of ops.h, as in the first lab. A forward is
// a list of calls, and its backward is the reversed list. There is no tape and no hidden state. If several ops write a
// gradient, the first one stores it, and the others add to it.
//
// The test below also runs the same model on the tape (models/nets/backbone.cpp). Losses and weights have the same
// bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "engine/train/adamw.h"
#include "models/nets/backbone.h"
#include "models/masks/mask.h"

using namespace masquerade;

namespace {

// Vocabulary, width, heads, inner width, layers, positions.
constexpr int V = 13, C = 16, H = 2, F = 24, L = 2, P = 8;
constexpr double eps = 1e-12;

// A tensor of floats and its gradient.
struct Matrix {
    Shape shape;
    std::unique_ptr<float[]> numbers, gradient;
    explicit Matrix(const Shape& s) : shape(s), numbers(new float[s.count()]()), gradient(new float[s.count()]()) {}
    operator View() const { return View{numbers.get(), DType::f32, Device::cpu, shape, "value"}; }
    View d() const { return View{gradient.get(), DType::f32, Device::cpu, shape, "gradient"}; }
    Grad stored() const { return Grad{d(), false}; }
    Grad added() const { return Grad{d(), true}; }
};

// A parameter. All parameters of the model are in one buffer, and their gradients in another.
struct Weight {
    Tensor* tensor;
    operator View() const { return tensor->view(); }
    Grad stored() const { return Grad{tensor->grad_view(), false}; }
    Grad added() const { return Grad{tensor->grad_view(), true}; }
};

struct LinearWeights {
    Weight w, b;
    LinearWeights(Parameters& p, const std::string& path) : w{p.find(path + ".weight")}, b{p.find(path + ".bias")} {}
};

// Data that all layers share: the positions of the rows, the mask, the rotary table, and the rule of attention.
struct Rows {
    Ints positions;
    SegmentGraph graph;
    View rotary_table;
    AttentionRule rule;
};

// One post-LN layer for N rows.
struct Layer {
    LinearWeights query, key_value, output, up, down, norm1, norm2;
    Matrix kv, kv_turned, q, q_turned, attended, lse, projected, sum1, mean1, rstd1, normed1;
    Matrix inner, active, outer, sum2, mean2, rstd2, y;

    Layer(Parameters& p, const std::string& path, int N)
        : query(p, path + ".attention.query"),
          key_value(p, path + ".attention.key_value"),
          output(p, path + ".attention.output"),
          up(p, path + ".ffn.up"),
          down(p, path + ".ffn.down"),
          norm1(p, path + ".norm1"),
          norm2(p, path + ".norm2"),
          kv({N, 2 * C}),
          kv_turned({N, 2 * C}),
          q({N, C}),
          q_turned({N, C}),
          attended({N, C}),
          lse({N, H}),
          projected({N, C}),
          sum1({N, C}),
          mean1({N}),
          rstd1({N}),
          normed1({N, C}),
          inner({N, F}),
          active({N, F}),
          outer({N, C}),
          sum2({N, C}),
          mean2({N}),
          rstd2({N}),
          y({N, C}) {}

    void forward(View x, const Rows& rows) {
        linear_forward(x, key_value.w, key_value.b, kv);
        rotary_forward(kv, rows.positions, rows.rotary_table, C, kv_turned);  // rotates the keys, but not the values
        linear_forward(x, query.w, query.b, q);
        rotary_forward(q, rows.positions, rows.rotary_table, C, q_turned);
        attention_forward(q_turned, Views{kv_turned}, rows.graph, rows.rule, attended, lse);
        linear_forward(attended, output.w, output.b, projected);
        add_forward(x, projected, sum1);
        layernorm_forward(sum1, norm1.w, norm1.b, eps, normed1, mean1, rstd1);
        linear_forward(normed1, up.w, up.b, inner);
        gelu_forward(inner, GeluKind::erf, active);
        linear_forward(active, down.w, down.b, outer);
        add_forward(normed1, outer, sum2);
        layernorm_forward(sum2, norm2.w, norm2.b, eps, y, mean2, rstd2);
    }

    // Computes the gradient of x from the gradient of y. Three ops write the gradient of x: the residual, the query map
    // and the key/value map.
    void backward(const Matrix& x, const Rows& rows) {
        layernorm_backward(y.d(), sum2, norm2.w, mean2, rstd2, sum2.stored(), norm2.w.stored(), norm2.b.stored());
        add_backward(sum2.d(), normed1.stored(), outer.stored());
        linear_backward(outer.d(), active, down.w, active.stored(), down.w.stored(), down.b.stored());
        gelu_backward(active.d(), inner, GeluKind::erf, inner.stored());
        linear_backward(inner.d(), normed1, up.w, normed1.added(), up.w.stored(), up.b.stored());
        layernorm_backward(normed1.d(), sum1, norm1.w, mean1, rstd1, sum1.stored(), norm1.w.stored(), norm1.b.stored());
        add_backward(sum1.d(), x.stored(), projected.stored());
        linear_backward(projected.d(), attended, output.w, attended.stored(), output.w.stored(), output.b.stored());
        attention_backward(attended.d(), q_turned, Views{kv_turned}, attended, lse, rows.graph, rows.rule,
                           q_turned.stored(), Grads{kv_turned.stored()});
        rotary_backward(q_turned.d(), rows.positions, rows.rotary_table, C, q.stored());
        linear_backward(q.d(), x, query.w, x.added(), query.w.stored(), query.b.stored());
        rotary_backward(kv_turned.d(), rows.positions, rows.rotary_table, C, kv.stored());
        linear_backward(kv.d(), x, key_value.w, x.added(), key_value.w.stored(), key_value.b.stored());
    }
};

struct LanguageModel {
    Weight token, type, head_bias;
    LinearWeights embedding_norm, dense, head_norm;
    std::vector<Layer> layers;
    Matrix words, types, sum, mean, rstd, x, hidden, active, head_mean, head_rstd, h, losses, lse, loss;
    Matrix h1, token1, bias1;  // gradients that cross_entropy_forward() computes

    LanguageModel(Parameters& p, int N)
        : token{p.find("embedding.token.weight")},
          type{p.find("embedding.type.weight")},
          head_bias{p.find("head.bias")},
          embedding_norm(p, "embedding.norm"),
          dense(p, "head.dense"),
          head_norm(p, "head.norm"),
          words({N, C}),
          types({N, C}),
          sum({N, C}),
          mean({N}),
          rstd({N}),
          x({N, C}),
          hidden({N, C}),
          active({N, C}),
          head_mean({N}),
          head_rstd({N}),
          h({N, C}),
          losses({N}),
          lse({N}),
          loss({1}),
          h1({N, C}),
          token1({V, C}),
          bias1({V}) {
        for (int i = 0; i < L; i++) layers.emplace_back(p, "layer." + std::to_string(i), N);
    }

    float forward(const Rows& rows, Ints ids, Ints type_ids, Ints targets, View weights) {
        embedding_forward(ids, token, words);
        embedding_forward(type_ids, type, types);
        add_forward(words, types, sum);
        layernorm_forward(sum, embedding_norm.w, embedding_norm.b, eps, x, mean, rstd);
        for (int i = 0; i < L; i++) layers[std::size_t(i)].forward(i == 0 ? x : layers[std::size_t(i - 1)].y, rows);
        linear_forward(layers.back().y, dense.w, dense.b, hidden);
        gelu_forward(hidden, GeluKind::erf, active);
        layernorm_forward(active, head_norm.w, head_norm.b, eps, h, head_mean, head_rstd);
        // The embedding table is also the matrix of the output layer.
        cross_entropy_forward(h, token, head_bias, targets, weights, 0, losses, lse, loss, h1, token1, bias1);
        return loss.numbers[0];
    }

    void backward(const Rows& rows, Ints ids, Ints type_ids) {
        loss.gradient[0] = 1;
        cross_entropy_backward(loss.d(), h1, token1, bias1, h.stored(), token.stored(), head_bias.stored());
        layernorm_backward(h.d(), active, head_norm.w, head_mean, head_rstd, active.stored(), head_norm.w.stored(),
                           head_norm.b.stored());
        gelu_backward(active.d(), hidden, GeluKind::erf, hidden.stored());
        linear_backward(hidden.d(), layers.back().y, dense.w, layers.back().y.stored(), dense.w.stored(),
                        dense.b.stored());
        for (int i = L; i-- > 0;) layers[std::size_t(i)].backward(i == 0 ? x : layers[std::size_t(i - 1)].y, rows);
        layernorm_backward(x.d(), sum, embedding_norm.w, mean, rstd, sum.stored(), embedding_norm.w.stored(),
                           embedding_norm.b.stored());
        add_backward(sum.d(), words.stored(), types.stored());
        embedding_backward(types.d(), type_ids, type.stored());
        embedding_backward(words.d(), ids, token.added());
    }
};

BackboneOptions options() {
    BackboneOptions o;
    o.vocabulary = V, o.width = C, o.heads = H, o.inner = F, o.layers = L, o.positions = P;
    o.deviation = 0.2;
    return o;
}

}  // namespace

TEST_CASE("a Transformer trained by free functions alone == the tape, bit for bit, and it learns") {
    // Three sentences. Every token predicts the next token; the last token of a sentence predicts nothing.
    const Documents sentences = {{5, 0}, {8, 0}, {4, 0}};
    TokenRows rows;
    std::vector<int> targets;
    std::vector<float> each;
    for (int b = 0; b < 3; b++)
        for (int t = 0; t < sentences[std::size_t(b)].source; t++) {
            rows.push((2 + 3 * b + 5 * t) % V, 0, t, b);
            targets.push_back((2 + 3 * b + 5 * (t + 1)) % V);
            each.push_back(t + 1 < sentences[std::size_t(b)].source ? 1.f / 14 : 0.f);
        }
    const int N = rows.count();
    const SegmentGraph causal = causal_mask(sentences);
    OptimiserRule rule;
    rule.clip = 1;

    // The model with free functions.
    Parameters parameters;
    Backbone declared(parameters, options());  // declares names, shapes and initial values
    parameters.allocate(1);
    LanguageModel model(parameters, N);
    std::vector<double> rotary_table = make_rotary_table(P, C / H);
    Matrix table({P, C / H}), weights({N}), m({parameters.length()}), v({parameters.length()}), norm({1}), control({3});
    for (std::size_t i = 0; i < rotary_table.size(); i++) table.numbers[i] = float(rotary_table[i]);
    std::copy(each.begin(), each.end(), weights.numbers.get());
    auto list = [](const std::vector<int>& numbers) { return Ints{numbers.data(), std::int64_t(numbers.size())}; };
    AttentionRule heads;
    heads.heads = H;
    const Rows common{list(rows.positions), causal, table, heads};

    // The same model on the tape.
    Parameters taped;
    Backbone backbone(taped, options());
    taped.allocate(1);
    AdamW adamw_of_tape(taped, rule);
    Arena arena;
    Tape tape(arena, DType::f32);

    float first = 0, last = 0;
    for (int t = 1; t <= 40; t++) {
        last = model.forward(common, list(rows.ids), list(rows.types), list(targets), weights);
        model.backward(common, list(rows.ids), list(rows.types));
        global_norm(parameters.gradients(), norm);
        control.numbers[0] = 0.01f;
        control.numbers[1] = float(1 / (1 - std::pow(rule.beta1, t)));
        control.numbers[2] = float(1 / (1 - std::pow(rule.beta2, t)));
        adamw(parameters.values(), parameters.gradients(), m, v, norm, control, rule, View{});
        if (t == 1) first = last;

        tape.begin("one");
        Tensor* x = backbone.run(tape, rows, causal);
        Tensor* loss = backbone.loss(tape, backbone.head(tape, backbone.finish(tape, x)), targets,
                                     tape.constant("weights", {N}, DType::f32, each.data()), "loss");
        tape.retain(loss);
        taped.start_gradients();
        tape.backward(loss);
        taped.finish_gradients();
        CHECK(*loss->view().as<float>() == last);
        CHECK(std::memcmp(taped.gradients().data, parameters.gradients().data, taped.gradients().bytes()) == 0);
        tape.end();
        adamw_of_tape.update(t, 0.01f);
        REQUIRE(std::memcmp(taped.values().data, parameters.values().data, taped.values().bytes()) == 0);
    }
    CHECK(first > 2);
    CHECK(last < 0.1 * first);
}
