// SPDX-License-Identifier: MIT
// Compares forwards with their formulas, which are written out here, and checks that every gradient can be stored and
// added. The ladder compares an op only with its own formula on other numbers, so it cannot find an error in the
// formula itself.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "engine/ops/ops.h"
#include "tests/ops/values.h"

using namespace masquerade;

namespace {

constexpr std::int64_t N = 5, C = 6;
const Grad absent;

double tolerance(DType type) { return type == DType::f64 ? 1e-12 : 2e-5; }

// Checks that y[i] equals expected(i) for all i.
void expect_numbers(const char* what, const Values& y, const std::function<double(std::int64_t)>& expected) {
    for (std::int64_t i = 0; i < y.count(); i++) {
        CAPTURE(what);
        CAPTURE(i);
        CHECK(std::abs(y[i] - expected(i)) <= tolerance(y.dtype) * (1 + std::abs(expected(i))));
    }
}

// Checks that run(grad) stores a gradient over any numbers, and adds the same gradient if the Grad says so.
void stores_and_adds(const char* what, DType type, const Shape& shape, const std::function<void(Grad)>& run) {
    Values stored(type, shape, NAN), added(type, shape, 0.75);
    run(stored.grad(false));
    run(added.grad(true));
    double size = 0;
    for (std::int64_t i = 0; i < stored.count(); i++) size += std::abs(stored[i]);
    CHECK_MESSAGE(size > 1e-3, what);
    expect_numbers(what, added, [&](std::int64_t i) { return 0.75 + stored[i]; });
}

// Returns the dot product of row `row` of a and of b; rows have Z numbers.
double dot_of_row(const Values& a, const Values& b, std::int64_t row, std::int64_t Z) {
    double sum = 0;
    for (std::int64_t i = 0; i < Z; i++) sum += a[row * Z + i] * b[row * Z + i];
    return sum;
}

}  // namespace

TEST_CASE("definitions: add, gelu, weighted_sum, rows") {
    for (DType type : {DType::f64, DType::f32}) {
        const Shape shape{N, C};
        Values a = Values::random(type, shape, 1, 3), b = Values::random(type, shape, 2), y(type, shape),
               dy = Values::random(type, shape, 3);
        add_forward(a.view(), b.view(), y.view());
        expect_numbers("add", y, [&](std::int64_t i) { return a[i] + b[i]; });
        stores_and_adds("da", type, shape, [&](Grad d) { add_backward(dy.view(), d, absent); });
        stores_and_adds("db", type, shape, [&](Grad d) { add_backward(dy.view(), absent, d); });

        gelu_forward(a.view(), GeluKind::erf, y.view());
        expect_numbers("gelu", y, [&](std::int64_t i) { return a[i] * 0.5 * (1 + std::erf(a[i] / std::sqrt(2.0))); });
        gelu_forward(a.view(), GeluKind::tanh, y.view());
        const double root = std::sqrt(2 / 3.14159265358979323846);
        expect_numbers("gelu by tanh", y, [&](std::int64_t i) {
            return a[i] * 0.5 * (1 + std::tanh(root * (a[i] + 0.044715 * a[i] * a[i] * a[i])));
        });
        for (GeluKind kind : {GeluKind::erf, GeluKind::tanh})
            stores_and_adds("gelu", type, shape, [&](Grad d) { gelu_backward(dy.view(), a.view(), kind, d); });

        Values sum(type, {1}), dsum(type, {1}, 0.5);
        weighted_sum_forward(a.view(), b.view(), sum.view());
        expect_numbers("weighted sum", sum, [&](std::int64_t) { return dot_of_row(a, b, 0, N * C); });
        stores_and_adds("weighted sum", type, shape, [&](Grad d) { weighted_sum_backward(dsum.view(), b.view(), d); });

        const std::vector<int> rows = {4, 1}, which = {-1, 1, -1, 0, -1};
        const Ints chosen{rows.data(), 2}, names{which.data(), N};
        Values some(type, {2, C}), dsome = Values::random(type, {2, C}, 4), u = Values::random(type, {2, C}, 5);
        gather_rows_forward(a.view(), chosen, some.view());
        expect_numbers("gather", some, [&](std::int64_t i) { return a[rows[std::size_t(i / C)] * C + i % C]; });
        stores_and_adds("gather", type, shape, [&](Grad d) { gather_rows_backward(dsome.view(), chosen, d); });
        replace_rows_forward(a.view(), names, u.view(), y.view());
        expect_numbers("replace", y, [&](std::int64_t i) {
            const int from = which[std::size_t(i / C)];
            return from < 0 ? a[i] : u[from * C + i % C];
        });
        stores_and_adds("replace x", type, shape, [&](Grad d) { replace_rows_backward(dy.view(), names, d, absent); });
        stores_and_adds("replace u", type, {2, C}, [&](Grad d) { replace_rows_backward(dy.view(), names, absent, d); });
    }
}

TEST_CASE("definitions: layernorm, dropout, residual_norm, rotary") {
    const std::vector<int> document = {0, 0, 1, 1, 1}, position = {0, 1, 0, 1, 2};
    const RowNames rows{{document.data(), N}, {position.data(), N}};
    const DropoutRule half{0.5f, make_stream(1, "dropout", 2)}, none{0, {}};
    for (DType type : {DType::f64, DType::f32}) {
        const Shape shape{N, C};
        Values x = Values::random(type, shape, 1, 3), f = Values::random(type, shape, 2), y(type, shape),
               s(type, shape), dy = Values::random(type, shape, 3), w = Values::random(type, {C}, 4),
               b = Values::random(type, {C}, 5), mean(type, {N}), rstd(type, {N}), dropped(type, shape),
               ones(type, shape, 1);
        const double eps = 0.01;
        auto normed = [&](const Values& of, std::int64_t i) {
            const std::int64_t row = i / C;
            double m = 0, v = 0;
            for (std::int64_t c = 0; c < C; c++) m += of[row * C + c] / C;
            for (std::int64_t c = 0; c < C; c++) v += (of[row * C + c] - m) * (of[row * C + c] - m) / C;
            return (of[i] - m) / std::sqrt(v + eps) * w[i % C] + b[i % C];
        };
        layernorm_forward(x.view(), w.view(), b.view(), eps, y.view(), mean.view(), rstd.view());
        expect_numbers("layernorm", y, [&](std::int64_t i) { return normed(x, i); });
        auto backward = [&](Grad dx, Grad dw, Grad db) {
            layernorm_backward(dy.view(), x.view(), w.view(), mean.view(), rstd.view(), dx, dw, db);
        };
        stores_and_adds("dx", type, shape, [&](Grad d) { backward(d, {}, {}); });
        stores_and_adds("dw", type, {C}, [&](Grad d) { backward({}, d, absent); });
        stores_and_adds("db", type, {C}, [&](Grad d) { backward({}, absent, d); });

        dropout_forward(ones.view(), rows, half, dropped.view());  // 0 or 2
        stores_and_adds("dropout", type, shape, [&](Grad d) { dropout_backward(dy.view(), rows, half, d); });
        residual_norm_forward(x.view(), f.view(), rows, half, w.view(), b.view(), eps, y.view(), s.view(), mean.view(),
                              rstd.view());
        expect_numbers("residual", s, [&](std::int64_t i) { return x[i] + dropped[i] * f[i]; });
        expect_numbers("residual norm", y, [&](std::int64_t i) { return normed(s, i); });
        for (const DropoutRule& rule : {half, none}) {
            auto residual = [&](Grad dx, Grad df, Grad dw, Grad db) {
                residual_norm_backward(dy.view(), s.view(), rows, rule, w.view(), mean.view(), rstd.view(), dx, df, dw,
                                       db);
            };
            Values other(type, shape);
            stores_and_adds("dx alone", type, shape, [&](Grad d) { residual(d, {}, {}, {}); });
            stores_and_adds("dx", type, shape, [&](Grad d) { residual(d, other.grad(false), {}, {}); });
            stores_and_adds("df", type, shape, [&](Grad d) { residual(other.grad(false), d, {}, {}); });
            stores_and_adds("dw", type, {C}, [&](Grad d) { residual({}, {}, d, absent); });
        }

        const std::int64_t P = 3, D = 2;
        Values rotary_table(type, {P, D});
        for (std::int64_t p = 0; p < P; p++)
            rotary_table.set(2 * p, std::cos(double(p))), rotary_table.set(2 * p + 1, std::sin(double(p)));
        rotary_forward(x.view(), rows.position, rotary_table.view(), 4, y.view());
        expect_numbers("rotary", y, [&](std::int64_t i) {
            const double angle = position[std::size_t(i / C)];
            if (i % C >= 4) return x[i];
            return i % 2 == 0 ? x[i] * std::cos(angle) - x[i + 1] * std::sin(angle)
                              : x[i] * std::cos(angle) + x[i - 1] * std::sin(angle);
        });
        stores_and_adds("rotary", type, shape,
                        [&](Grad d) { rotary_backward(dy.view(), rows.position, rotary_table.view(), 4, d); });
    }
}

TEST_CASE("definitions: latents") {
    const std::int64_t Z = 4;
    for (DType type : {DType::f64, DType::f32}) {
        Values x = Values::random(type, {N, Z}, 1), y(type, {N, Z}), inverse(type, {N, 1}),
               e = Values::random(type, {N, Z}, 2), z(type, {N, Z}), w(type, {N}), dz = Values::random(type, {N, Z}, 3);
        for (std::int64_t n = 0; n < N; n++) w.set(n, 0.25 * double(n - 2));
        normalise_forward(x.view(), 1, y.view(), inverse.view());
        expect_numbers("normalise", y, [&](std::int64_t i) { return x[i] / std::sqrt(dot_of_row(x, x, i / Z, Z)); });
        stores_and_adds("normalise", type, {N, Z},
                        [&](Grad d) { normalise_backward(dz.view(), y.view(), inverse.view(), 1, d); });

        vmf_sample_forward(y.view(), w.view(), e.view(), z.view());
        expect_numbers("vmf", z, [&](std::int64_t i) {
            const std::int64_t n = i / Z;
            const double along = dot_of_row(e, y, n, Z);
            const double length = std::sqrt(dot_of_row(e, e, n, Z) - along * along);
            return w[n] * y[i] + std::sqrt(1 - w[n] * w[n]) * (e[i] - along * y[i]) / length;
        });
        stores_and_adds("vmf", type, {N, Z},
                        [&](Grad d) { vmf_sample_backward(dz.view(), y.view(), w.view(), e.view(), d, Grad{}); });

        Values both = Values::random(type, {N, 2 * Z}, 4, 3), kl(type, {N}), dkl = Values::random(type, {N}, 5);
        both.set(Z, 20), both.set(Z + 1, -20);  // log variances beyond the limits, which are clamped
        auto variance = [&](std::int64_t n, std::int64_t i) {
            return std::exp(std::min(8.0, std::max(-8.0, both[n * 2 * Z + Z + i])));
        };
        gaussian_sample_forward(both.view(), e.view(), z.view());
        expect_numbers("gaussian", z, [&](std::int64_t i) {
            const std::int64_t n = i / Z;
            return both[n * 2 * Z + i % Z] + std::sqrt(variance(n, i % Z)) * e[i];
        });
        stores_and_adds("gaussian", type, {N, 2 * Z},
                        [&](Grad d) { gaussian_sample_backward(dz.view(), both.view(), e.view(), d); });
        gaussian_kl_forward(both.view(), View{}, kl.view());
        expect_numbers("kl", kl, [&](std::int64_t n) {
            double sum = 0;
            for (std::int64_t i = 0; i < Z; i++) {
                const double mu = both[n * 2 * Z + i], v = variance(n, i);
                sum += 0.5 * (mu * mu + v - std::log(v) - 1);
            }
            return sum;
        });
        Values terms(type, {N, Z}), held(type, {N, Z});
        gaussian_kl_forward(both.view(), View{}, terms.view());
        expect_numbers("kl is the sum of its terms", kl, [&](std::int64_t n) {
            return terms[n * Z] + terms[n * Z + 1] + terms[n * Z + 2] + terms[n * Z + 3];
        });
        at_least_forward(terms.view(), 0.3, held.view());
        expect_numbers("at_least", held,
                       [&](std::int64_t i) { return std::max(terms[i], type == DType::f32 ? double(0.3f) : 0.3); });
        stores_and_adds("kl", type, {N, 2 * Z},
                        [&](Grad d) { gaussian_kl_backward(dkl.view(), both.view(), View{}, d, Grad{}); });
    }
}
