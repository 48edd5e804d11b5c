// SPDX-License-Identifier: MIT
// Lab 1: a small language model. Write its training step in lab.cpp. Use only the functions of engine/ops/ops.h.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/ops/ops.h"
#include "models/masks/mask.h"

namespace lab {
using namespace masquerade;

// A tensor of doubles and its gradient. For a parameter of type View, pass the Matrix itself, or d() if the op wants
// the gradient of its output. For a parameter of type Grad, pass stored() or added(): the op stores the gradient, or
// adds it to the numbers that are there.
struct Matrix {
    std::string path;
    Shape shape;
    std::unique_ptr<double[]> numbers, gradient;
    Matrix(std::string name, const Shape& s)
        : path(std::move(name)), shape(s), numbers(new double[s.count()]()), gradient(new double[s.count()]()) {}
    operator View() const { return {numbers.get(), DType::f64, Device::cpu, shape, path.c_str()}; }
    View d() const { return {gradient.get(), DType::f64, Device::cpu, shape, path.c_str()}; }
    Grad stored() const { return {d(), false}; }
    Grad added() const { return {d(), true}; }
};
struct Linear {
    Matrix w, b;
    Linear(const std::string& path, int O, int I) : w(path + ".w", {O, I}), b(path + ".b", {O}) {}
};
struct Norm {
    Matrix w, b, mean, rstd;  // mean and rstd are not parameters: the forward writes them, and the backward reads them
    Norm(const std::string& path, int N, int C)
        : w(path + ".w", {C}), b(path + ".b", {C}), mean(path + ".mean", {N}), rstd(path + ".rstd", {N}) {}
};

struct Sizes {
    int N, V, C, H, F;  // rows, words, width, heads, inner width
};
constexpr double eps = 1e-5;  // added to the variance in the norms

// A model with one pre-LN block. The matrix `token` is used twice: as the embedding table and as the output matrix.
//     x  = token[ids]
//     s1 = x + output(attended),   attended = causal attention of q = query(n1) to kv = key_value(n1),   n1 = norm1(x)
//                                  with AttentionRule::heads = size.H
//     s2 = s1 + outer,             outer = down(a),   a = gelu(u) by erf,   u = up(n2),                  n2 = norm2(s1)
//     h  = norm3(s2),              loss = sum of weights_n times -log softmax(token h_n + bias)[targets_n]
struct Model {
    Sizes size;
    Matrix token, bias;  // (V,C), (V)
    Linear query, key_value, output, up, down;
    Norm norm1, norm2, norm3;
    // The values, in the order in which the forward computes them.
    Matrix x, n1, q, kv, attended, lse, projected, s1, n2, u, a, outer, s2, h;
    // h1, token1 and bias1 are gradients of h, token and bias, which cross_entropy_forward() computes and
    // cross_entropy_backward() reads.
    Matrix losses, lse_words, loss, h1, token1, bias1;

    explicit Model(const Sizes& s)
        : size(s),
          token("token", {s.V, s.C}),
          bias("bias", {s.V}),
          query("query", s.C, s.C),
          key_value("key_value", 2 * s.C, s.C),
          output("output", s.C, s.C),
          up("up", s.F, s.C),
          down("down", s.C, s.F),
          norm1("norm1", s.N, s.C),
          norm2("norm2", s.N, s.C),
          norm3("norm3", s.N, s.C),
          x("x", {s.N, s.C}),
          n1("n1", {s.N, s.C}),
          q("q", {s.N, s.C}),
          kv("kv", {s.N, 2 * s.C}),
          attended("attended", {s.N, s.C}),
          lse("lse", {s.N, s.H}),
          projected("projected", {s.N, s.C}),
          s1("s1", {s.N, s.C}),
          n2("n2", {s.N, s.C}),
          u("u", {s.N, s.F}),
          a("a", {s.N, s.F}),
          outer("outer", {s.N, s.C}),
          s2("s2", {s.N, s.C}),
          h("h", {s.N, s.C}),
          losses("losses", {s.N}),
          lse_words("lse_words", {s.N}),
          loss("loss", {1}),
          h1("h1", {s.N, s.C}),
          token1("token1", {s.V, s.C}),
          bias1("bias1", {s.V}) {}
    std::vector<Matrix*> parameters() {
        return {&token,   &norm1.w, &norm1.b, &query.w, &query.b, &key_value.w, &key_value.b, &output.w, &output.b,
                &norm2.w, &norm2.b, &up.w,    &up.b,    &down.w,  &down.b,      &norm3.w,     &norm3.b,  &bias};
    }
};

// Packed documents. Each row has a token in `ids` and predicts the token at the same index of `targets`.
struct Batch {
    Documents documents;  // for causal_mask
    std::vector<int> ids, targets;
    Matrix weights;  // (N): the weight of each row in the loss
};
inline Ints list(const std::vector<int>& numbers) { return {numbers.data(), std::int64_t(numbers.size())}; }

// Computes all values, and returns the loss.
double forward(Model& m, const Batch& batch);
// Computes the gradients of all parameters from the values that forward() has computed. The memory of the gradients may
// contain any numbers before the call.
void backward(Model& m, const Batch& batch);
// Computes parameter -= rate * gradient for all parameters.
void update(Model& m, double rate);

}  // namespace lab
