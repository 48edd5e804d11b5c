// SPDX-License-Identifier: MIT
// The op feature_map (ops.h), for linear attention. y contains the features of each head of x or, for some kinds, the
// logarithms of the features. They are computed from t, the projections of the heads, and, for some kinds, from the
// norm of each head. A row of t, x or y is one token, and contains the token's heads one after another. In
// engine/math/features.h, a row is one head of one token.
#include "engine/math/features.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// Calls f(types, kind, rows). `kind` is a std::integral_constant, so that each kind has its own loop. `rows` is a
// FeatureRows, which contains t, x and their sizes.
template <class F>
void for_rows(const View& t, const View& x, int heads, double scale, FeatureKind kind, F f) {
    const int R = int(t.columns() / heads), D = x ? int(x.columns() / heads) : 0;
    for_type((x ? x : t).dtype, [&]<class S, class A>(S, A) {
        auto run = [&](auto k) {
            f(S(), A(), k, FeatureRows<k(), S, A>{t.as<A>(), x.as<S>(), R, D, A(scale), A(feature_factor(kind, R))});
        };
        [&]<int... k>(std::integer_sequence<int, k...>) {
            ((int(kind) == k ? run(std::integral_constant<FeatureKind, FeatureKind(k)>{}) : void()), ...);
        }
        (std::make_integer_sequence<int, feature_kinds>{});
    });
}

void check(const char* op, const View& t, const View& x, int heads, FeatureKind kind, const char* role, const View& y) {
    if (heads < 1 || (has_norm(kind) && !x && t.count() > 0))
        throw Error(op, ": ", seen("t", t), ", ", seen("x", x), ", ", heads,
                    " heads; expected x (N,C), which only relu, rfa, softplus and elu can miss");
    expect_shape(op, role, y, {t.rows(), heads * features_of(kind, int(t.columns() / heads))}, t.dtype);
}

}  // namespace

void feature_map_forward(View t, View x, int heads, double scale, FeatureKind kind, View y) {
    check("feature_map", t, x, heads, kind, "y", y);
    for_rows(t, x, heads, scale, kind, [&]<class S, class A>(S, A, auto k, auto rows) {
        for_each_row(t.rows() * heads, FeatureForward<k(), S, A>{rows, y.as<A>()});
    });
}

void feature_map_backward(View dy, View t, View x, int heads, double scale, FeatureKind kind, Grad dt, Grad dx) {
    const char* op = "feature_map backward";
    check(op, t, x, heads, kind, "dy", dy);
    for_rows(t, x, heads, scale, kind, [&]<class S, class A>(S, A, auto k, auto rows) {
        for_each_row(t.rows() * heads,
                     FeatureBackward<k(), S, A>{rows, dy.as<A>(), dt.as<A>(), dt.add, dx.as<S>(), dx.add});
    });
}

}  // namespace masquerade::DEVICE
