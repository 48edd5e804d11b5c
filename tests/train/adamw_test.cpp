// SPDX-License-Identifier: MIT
// Compares AdamW with the textbook formulas in double. Also tests clipping, and that only matrices decay.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/tape/trace.h"
#include "engine/train/adamw.h"

using namespace masquerade;

namespace {

struct Model {
    Parameters p;
    Tensor *w, *b;
    explicit Model(DType type) : p(type) {
        w = p.add("w", {5, 7}, {Init::normal, 1});
        b = p.add("b", {7}, {Init::normal, 1});
        p.allocate(2);
    }
    // Draws the gradients of step t. They are the same for every type.
    void draw(std::int64_t t) {
        for (Tensor& each : p.all()) {
            Sequence random(std::uint64_t(t), each.path);
            for (std::int64_t i = 0; i < each.shape.count(); i++) {
                float g = 4 * random.uniform() - 2;
                if (p.dtype() == DType::f64)
                    each.grad_view().as<double>()[i] = double(g);
                else
                    each.grad_view().as<float>()[i] = g;
            }
        }
    }
};

// Algorithm 2 of Loshchilov & Hutter 2017, after the gradient is scaled to the norm `clip`.
struct Textbook {
    std::vector<double> p, m, v;
    void step(std::int64_t t, double rate, const OptimiserRule& rule, double norm, double decay, const View& gradient) {
        double scale = rule.clip > 0 && norm > rule.clip ? rule.clip / norm : 1;
        for (std::size_t i = 0; i < p.size(); i++) {
            double g = scale * number_at(gradient, std::int64_t(i));
            m[i] = rule.beta1 * m[i] + (1 - rule.beta1) * g;
            v[i] = rule.beta2 * v[i] + (1 - rule.beta2) * g * g;
            double mean = m[i] / (1 - std::pow(rule.beta1, double(t)));
            double square = v[i] / (1 - std::pow(rule.beta2, double(t)));
            p[i] -= rate * (mean / (std::sqrt(square) + rule.eps) + decay * p[i]);
        }
    }
};

// Returns the largest difference from the textbook after 25 steps.
double difference(DType type, const OptimiserRule& rule) {
    Model model(type);
    AdamW adamw(model.p, rule);
    std::vector<Textbook> books;
    for (const Tensor& t : model.p.all()) {
        Textbook book;
        for (std::int64_t i = 0; i < t.shape.count(); i++) book.p.push_back(number_at(t.view(), i));
        book.m.assign(book.p.size(), 0);
        book.v.assign(book.p.size(), 0);
        books.push_back(book);
    }
    double worst = 0;
    for (std::int64_t t = 1; t <= 25; t++) {
        const double rate = 0.02 / double(t);
        model.draw(t);
        double square = 0;
        for (const Tensor& each : model.p.all())
            for (std::int64_t i = 0; i < each.shape.count(); i++)
                square += number_at(each.grad_view(), i) * number_at(each.grad_view(), i);
        adamw.update(t, rate);
        CHECK(std::fabs(adamw.norm() - std::sqrt(square)) <= 1e-6 * std::sqrt(square));
        for (std::size_t k = 0; k < books.size(); k++) {
            const Tensor& each = model.p.all()[k];
            books[k].step(t, rate, rule, std::sqrt(square), each.shape.rank == 2 ? rule.decay : 0, each.grad_view());
            for (std::size_t i = 0; i < books[k].p.size(); i++) {
                double d = std::fabs(books[k].p[i] - number_at(each.view(), std::int64_t(i)));
                worst = d > worst || d != d ? d : worst;
            }
        }
    }
    return worst;
}

}  // namespace

TEST_CASE("adamw: the textbook's numbers, with and without decay and clipping") {
    for (double decay : {0.0, 0.1})
        for (double clip : {0.0, 1.0, 1e6}) {
            OptimiserRule rule;
            rule.decay = decay;
            rule.clip = clip;
            CAPTURE(decay);
            CAPTURE(clip);
            CHECK(difference(DType::f64, rule) <= 1e-14);
            CHECK(difference(DType::f32, rule) <= 1e-6);
        }
}

TEST_CASE("adamw: weights decay, biases and norms do not") {
    OptimiserRule rule;
    rule.decay = 0.5;
    Model model(DType::f64);
    AdamW adamw(model.p, rule);
    double w = number_at(model.w->view(), 3), b = number_at(model.b->view(), 3);
    adamw.update(1, 0.1);  // all gradients are zero
    CHECK(number_at(model.w->view(), 3) == doctest::Approx(w * (1 - 0.05)).epsilon(1e-14));
    CHECK(number_at(model.b->view(), 3) == b);
}

TEST_CASE("adamw: only the direction of a clipped gradient counts, a smaller one is not scaled") {
    OptimiserRule rule;
    rule.clip = 1e-3;
    Model small(DType::f64), large(DType::f64);
    AdamW a(small.p, rule), b(large.p, rule);
    small.draw(1), large.draw(1);
    for (Tensor& t : large.p.all())
        for (std::int64_t i = 0; i < t.shape.count(); i++) t.grad_view().as<double>()[i] *= 1000;
    a.update(1, 0.1), b.update(1, 0.1);
    CHECK(b.norm() == doctest::Approx(1000 * a.norm()));
    for (std::int64_t i = 0; i < small.p.length(); i++) {
        CHECK(std::fabs(number_at(a.state(0), i) - number_at(b.state(0), i)) <= 1e-18);
        CHECK(std::fabs(number_at(a.state(1), i) - number_at(b.state(1), i)) <= 1e-21);
    }
    double square = 0;
    for (std::int64_t i = 0; i < small.p.length(); i++) square += number_at(a.state(0), i) * number_at(a.state(0), i);
    CHECK(std::sqrt(square) == doctest::Approx((1 - rule.beta1) * 1e-3));
}

TEST_CASE("adamw: a norm that is not finite reaches the parameters and is not hidden") {
    OptimiserRule rule;
    rule.clip = 1;
    Model model(DType::f32);
    AdamW adamw(model.p, rule);
    model.draw(1);
    model.w->grad_view().as<float>()[0] = NAN;
    adamw.update(1, 0.1);
    CHECK(std::isnan(adamw.norm()));
    CHECK(std::isnan(number_at(model.w->view(), 0)));
}

TEST_CASE("adamw: copies in bf16 follow their f32 masters, which move as in f32") {
    OptimiserRule rule;
    rule.decay = 0.01;
    Model half(DType::bf16), single(DType::f32);
    AdamW of_half(half.p, rule), of_single(single.p, rule);
    for (int t = 1; t <= 5; t++) {
        half.draw(t), single.draw(t);
        of_half.update(t, 1e-3), of_single.update(t, 1e-3);
    }
    const View masters = half.p.values(), rounded = half.p.rounded();
    CHECK(std::memcmp(masters.data, single.p.values().data, masters.bytes()) == 0);
    int different = 0;
    for (std::int64_t i = 0; i < rounded.count(); i++)
        different += rounded.as<bfloat16>()[i].bits != bfloat16(masters.as<float>()[i]).bits;
    CHECK(different == 0);
    CHECK(rounded.count() == half.p.trained(masters).count());
    for (const Tensor* one : {half.w, half.b}) CHECK(one->rounded == half.p.slice(rounded, *one).data);
}

TEST_CASE("adamw: a gradient below the clipping norm is taken as it is") {
    OptimiserRule rule;
    rule.clip = 1e6;
    Model model(DType::f64);
    AdamW optimiser(model.p, rule);
    model.draw(1);
    std::vector<double> gradient;
    for (std::int64_t i = 0; i < model.p.length(); i++) gradient.push_back(number_at(model.p.gradients(), i));
    optimiser.update(1, 0.1);
    for (std::int64_t i = 0; i < model.p.length(); i++)
        CHECK(number_at(optimiser.state(0), i) == doctest::Approx((1 - rule.beta1) * gradient[std::size_t(i)]));
}
