// SPDX-License-Identifier: MIT
// Tests random features: the means that they must have, and their draws.
#include <doctest/doctest.h>

#include <cmath>

#include "engine/math/features.h"
#include "engine/nn/functions.h"
#include "engine/nn/parameters.h"
#include "engine/tensor/numbers.h"
#include "tests/ops/values.h"

using namespace masquerade;

namespace {

constexpr int D = 16;
using Numbers = std::vector<double>;

double dot(const double* a, const double* b, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

// Returns two rows of one head: q with this length, and k with the same length, at this angle to q.
Values rows(double length, double angle) {
    Values x(DType::f64, {2, D});
    for (int d = 0; d < D; d++) {  // two orthogonal directions that use all channels
        const double a = std::cos(0.3 + 2 * 3.14159265358979 * d / D) * std::sqrt(2.0 / D),
                     b = std::sin(0.3 + 2 * 3.14159265358979 * d / D) * std::sqrt(2.0 / D);
        x.set(d, length * a), x.set(D + d, length * (std::cos(angle) * a + std::sin(angle) * b));
    }
    return x;
}

// Returns phi(q) . phi(k) for these rows w, with the inputs multiplied by `scale`.
double kernel(const Values& of, Numbers w, double scale, FeatureKind kind) {
    Values x = of;
    const int R = int(w.size()) / D, F = features_of(kind, R);
    Values t(DType::f64, {2, R}), y(DType::f64, {2, F});
    head_scores_forward(x.view(), View{w.data(), DType::f64, Device::cpu, {R, D}, "w"}, 1, scale, t.view());
    feature_map_forward(t.view(), x.view(), 1, scale, kind, y.view());
    double s = 0;
    for (int f = 0; f < F; f++) s += is_logarithm(kind) ? std::exp(y[f] + y[F + f]) : y[f] * y[F + f];
    return s;
}

}  // namespace

TEST_CASE("features: the mean of 1e5 is exp(q.k / sqrt d), to 1 %") {
    for (FeatureKind kind : {FeatureKind::positive, FeatureKind::hyperbolic, FeatureKind::trigonometric})
        for (bool orthogonal : {true, false})
            for (double length : {1.0, 0.5})
                for (double angle : {0.0, 1.0, 3.14159265}) {
                    const Values x = rows(length, angle);
                    const double found =
                        kernel(x, random_features(100000, 1, D, {orthogonal}, 7, "features"), std::pow(D, -0.25), kind);
                    const double wanted = std::exp(length * length * std::cos(angle) / std::sqrt(double(D)));
                    CAPTURE(int(kind));
                    CAPTURE(orthogonal);
                    CAPTURE(length);
                    CAPTURE(angle);
                    CHECK(std::fabs(found / wanted - 1) <= 0.01);
                }
}

// Computes E[phi(q) . phi(k)] over normal rows w. w has 2 numbers, so a grid in polar coordinates replaces the draws,
// and each row has its density as its weight. A kind without rows is compared with its definition.
TEST_CASE("features: every kind has its kernel, by quadrature over the rows, or its definition") {
    constexpr int angles = 256, radii = 160, R = angles * radii;
    constexpr double pi = 3.14159265358979323846, far = 3;  // the square root of the largest radius
    std::vector<double> w, share;
    for (int a = 0; a < angles; a++)
        for (int r = 0; r < radii; r++) {
            const double angle = 2 * pi * (a + 0.5) / angles, root = far * (r + 0.5) / radii, radius = root * root;
            w.push_back(radius * std::cos(angle)), w.push_back(radius * std::sin(angle));
            // The factor R cancels the division by R in phi.
            share.push_back(radius * std::exp(-radius * radius / 2) * 2 * root * far / radii / angles * R);
        }
    double all = 0;
    for (double each : share) all += each / R;
    CHECK(std::fabs(all - 1) < 1e-4);
    for (double& each : share) each /= all;
    const double q[] = {0.8, -0.5}, k[] = {-0.3, 1.1}, dot_qk = dot(q, k, 2),
                 lengths = std::sqrt(dot(q, q, 2) * dot(k, k, 2));
    for (const double scale : {1.0, std::pow(2.0, -0.25), 0.4})
        for (FeatureKind kind = FeatureKind::positive; int(kind) <= int(FeatureKind::elu);
             kind = FeatureKind(int(kind) + 1)) {
            const int name = int(kind);
            CAPTURE(name);
            CAPTURE(scale);
            if (kind == FeatureKind::elu || kind == FeatureKind::softplus) {
                Values t(DType::f64, {1, 5}), y(DType::f64, {1, 5});
                const double at[] = {-3, -0.4, 0, 0.7, 5};
                for (int i = 0; i < 5; i++) t.set(i, at[i]);
                feature_map_forward(t.view(), View{}, 1, scale, kind, y.view());
                for (int i = 0; i < 5; i++) {
                    const double elu = at[i] > 0 ? at[i] + 1 : std::exp(at[i]),
                                 softplus = std::log2(1 + std::exp2(at[i]));
                    CHECK(std::fabs(y[i] - (kind == FeatureKind::elu ? elu : softplus)) <= 1e-15 * (1 + y[i]));
                }
                continue;
            }
            const int F = features_of(kind, R);
            Values x(DType::f64, {2, 2}), t(DType::f64, {2, R}), y(DType::f64, {2, F});
            for (int i = 0; i < 2; i++) x.set(i, q[i]), x.set(2 + i, k[i]);
            head_scores_forward(x.view(), View{w.data(), DType::f64, Device::cpu, {R, 2}, "w"}, 1, scale, t.view());
            feature_map_forward(t.view(), x.view(), 1, scale, kind, y.view());
            double found = 0;
            for (int f = 0; f < F; f++)
                found += share[std::size_t(f % R)] * (is_logarithm(kind) ? std::exp(y[f] + y[F + f]) : y[f] * y[F + f]);
            const double squares = scale * scale * (dot(q, q, 2) + dot(k, k, 2)), product = scale * scale * dot_qk;
            double wanted = std::exp(product);  // for the positive, hyperbolic and trigonometric kinds
            if (kind == FeatureKind::rfa) wanted = std::exp(product - squares / 2);
            // The arc-cosine kernel, and the part that 1e-3 adds; features of this kind are not divided by R.
            if (kind == FeatureKind::relu) {
                const double angle = std::acos(dot_qk / lengths),
                             means = scale * (std::sqrt(dot(q, q, 2)) + std::sqrt(dot(k, k, 2))) / std::sqrt(2 * pi);
                wanted = R * (scale * scale * lengths * (std::sin(angle) + (pi - angle) * std::cos(angle)) / (2 * pi) +
                              1e-3 * means + 1e-6);
            }
            CHECK(std::fabs(found / wanted - 1) <= (kind == FeatureKind::relu ? 5e-4 : 1e-6));
        }
}

// On the unit sphere, with |x - y|^2 = 2.345 and sigma = 1.7, the kernel is 0.6665. If w had the variance sigma^2, the
// result would be 0.034.
TEST_CASE("features: rfa has the kernel of sigma where its rows have the variance 1 / sigma^2") {
    const double sigma = 1.7, wanted = std::exp(-2.345 / (2 * sigma * sigma));
    CHECK(std::fabs(wanted - 0.6665) <= 1e-4);
    const Values x = rows(1, std::acos(1 - 2.345 / 2));
    for (bool orthogonal : {true, false}) {
        auto found = [&](double deviation) {
            return kernel(x, random_features(100000, 1, D, {orthogonal, false, deviation}, 3, "rfa"), 1,
                          FeatureKind::rfa);
        };
        CHECK(std::fabs(found(1 / sigma) / wanted - 1) <= 0.01);
        CHECK(std::fabs(found(sigma) - std::exp(-sigma * sigma * 2.345 / 2)) <= 0.01);
    }
}

TEST_CASE("features: rows of a block stand at right angles and are as long as they should be") {
    const int R = 40, H = 3, C = H * D;
    for (bool regular : {true, false}) {
        const Numbers w = random_features(R, H, D, {true, regular, 0.5}, 1, "features");
        double worst = 0, length = 0;
        for (int h = 0; h < H; h++)
            for (int r = 0; r < R; r++) {
                const double* row = &w[std::size_t(r * C + h * D)];
                for (int k = r / D * D; k < r; k++)
                    worst = std::max(worst, std::fabs(dot(row, &w[std::size_t(k * C + h * D)], D)));
                const double square = dot(row, row, D) * 4;
                if (regular) CHECK(std::fabs(square - D) <= 1e-12);
                length += square / (H * R);
            }
        CHECK(worst <= 1e-13);
        CHECK(std::fabs(length / D - 1) <= 0.1);  // the standard deviation is 0.032
    }
}

TEST_CASE("features: their numbers are those of seed, name, draw and head, whatever the number of rows and heads") {
    const Numbers some = random_features(20, 2, D, {}, 1, "a");
    CHECK((random_features(20, 2, D, {}, 1, "a") == some));
    CHECK((random_features(20, 2, D, {}, 2, "a") != some));
    CHECK((random_features(20, 2, D, {}, 1, "b") != some));
    CHECK((random_features(20, 2, D, {}, 1, "a", 1) != some));
    CHECK(some[0] != some[D]);  // the heads have different numbers
    const Numbers more = random_features(33, 3, D, {}, 1, "a");
    for (int r = 0; r < 20; r++)
        for (int c = 0; c < 2 * D; c++) CHECK(more[std::size_t(r * 3 * D + c)] == some[std::size_t(r * 2 * D + c)]);
}

TEST_CASE("features: a kind without a norm does without x") {
    Values t = Values::random(DType::f32, {3, 8}, 1, 3), y(DType::f32, {3, 8}), x(DType::f32, {3, 6});
    feature_map_forward(t.view(), View{}, 2, 1, FeatureKind::softplus, y.view());
    for (int i = 0; i < 24; i++) CHECK(std::fabs(y[i] - std::log2(1 + std::exp2(t[i]))) <= 1e-6);
    feature_map_backward(y.view(), t.view(), x.view(), 2, 1, FeatureKind::elu, Grad{}, x.grad(true));
    for (int i = 0; i < 18; i++) CHECK(x[i] == 0);
    CHECK_THROWS_AS(feature_map_forward(t.view(), View{}, 2, 1, FeatureKind::positive, y.view()), Error);
    CHECK_THROWS_AS(feature_map_forward(t.view(), x.view(), 3, 1, FeatureKind::positive, y.view()), Error);
}

TEST_CASE("features: a state that is drawn anew has the numbers of its draw from that step on, whatever was before") {
    const auto make = [](std::uint64_t seed, std::uint32_t draw) {
        return random_features(4, 2, D, {}, seed, "features", draw);
    };
    Parameters straight, resumed;
    for (Parameters* p : {&straight, &resumed}) {
        p->add_state("features", {4, 2 * D}, {Init::made, 0, make, 3});
        p->add_state("kept", {4, 2 * D}, {Init::made, 0, make});
        p->allocate(9);
    }
    for (std::int64_t step = 0; step < 8; step++) {
        straight.redraw(step);
        if (step >= 6) resumed.redraw(step);
        for (Parameters* p : {&straight, &resumed}) {
            const Numbers drawn = make(9, p == &resumed && step < 6 ? 0 : std::uint32_t(step / 3)), first = make(9, 0);
            for (std::size_t i = 0; i < drawn.size(); i++) {
                REQUIRE(number_at(p->find("features")->view(), std::int64_t(i)) == float(drawn[i]));
                REQUIRE(number_at(p->find("kept")->view(), std::int64_t(i)) == float(first[i]));
            }
        }
    }
    CHECK(make(9, 1) != make(9, 2));
}
