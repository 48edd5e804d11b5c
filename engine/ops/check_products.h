// SPDX-License-Identifier: MIT
// Checks of the arguments of linear, rotary, embedding, cross_entropy, and the ops that combine linear with gelu or
// rotary. All devices use them.
#pragma once
#include "engine/ops/check.h"

namespace masquerade {

inline void check_linear(const View& x, const View& w, const View& b, const View& y) {
    if (w.columns() != x.columns() || w.dtype != x.dtype)
        throw Error(text("linear: ", seen("x", x), " but ", seen("w", w), "; last sizes and types must agree"));
    if (y.rows() != x.rows() || y.columns() != w.rows() || (y.dtype != x.dtype && y.dtype != arithmetic_of(x.dtype)))
        expect_shape("linear", "y", y, {x.rows(), w.rows()}, x.dtype);
    if (b) expect_shape("linear", "b", b, {w.rows()}, arithmetic_of(x.dtype));
}

inline void check_linear_gelu(const View& x, const View& u, const View& a) {
    expect_same_shape("linear gelu", "u", u, "a", a);
    if (u.dtype != x.dtype) expect_shape("linear gelu", "u", u, u.shape, x.dtype);
}

inline void check_linear_backward(const View& dy, const View& x, const View& w, const Grad& dx, const Grad& dw,
                                  const Grad& db) {
    bool typed = (dy.dtype == x.dtype || dy.dtype == arithmetic_of(x.dtype)) && w.dtype == x.dtype;
    if (dy.rows() != x.rows() || dy.columns() != w.rows() || w.columns() != x.columns() || !typed)
        throw Error(text("linear backward: ", seen("dy", dy), ", ", seen("x", x), ", ", seen("w", w),
                         "; expected (M,O), (M,I), (O,I) of one type"));
    expect_grad("linear backward", "dx", dx, x);
    expect_weight_grad("linear backward", "dw", dw, w);
    if (db) expect_shape("linear backward", "db", db.view, {w.rows()}, arithmetic_of(x.dtype));
}

inline void check_gelu_linear_backward(const View& u, const View& a, const Grad& du) {
    expect_same_shape("gelu linear backward", "u", u, "a", a);
    expect_grad("gelu linear backward", "du", du, u);
}

// x is the input of the op rotary. In linear_rotary, x is the output of the linear map, which is then rotated in
// place.
inline void check_rotary(const View& x, const Ints& positions, const View& rotary_table, int columns) {
    const std::int64_t D = rotary_table.columns();
    expect_count("rotary", "positions", positions, x.rows());
    expect_rows("rotary", "position", positions, rotary_table);
    if (rotary_table.dtype != arithmetic_of(x.dtype))
        expect_shape("rotary", "rotary_table", rotary_table, rotary_table.shape, arithmetic_of(x.dtype));
    if (D % 2 || columns % D || columns > x.columns())
        throw Error(text("rotary ", x.path, " ", x.shape, ": ", columns, " columns in heads of ", D,
                         "; heads must be even and fill the columns"));
}

inline void check_embedding(const Ints& ids, const View& w, const View& y) {
    expect_rows("embedding", "id", ids, w);
    expect_shape("embedding", "y", y, {ids.count, w.columns()}, w.dtype);
}

inline void check_embedding_backward(const View& dy, const Ints& ids, const Grad& dw) {
    expect_rows("embedding backward", "id", ids, dw.view);
    if (dy.rows() != ids.count || dy.columns() != dw.view.columns() || arithmetic_of(dy.dtype) != dw.view.dtype)
        throw Error(text("embedding backward: ", seen("dy", dy), " and ", ids.count, " ids, but ", seen("dw", dw.view),
                         "; expected a row for every id, as wide as dw"));
}

inline void check_cross_entropy(const View& h, const View& w, const View& b, const Ints& targets, const View& weights,
                                double smoothing, const View& loss, const View& lse, const View& total, const View& h1,
                                const View& w1, const View& b1) {
    const char* op = "cross_entropy";
    if (w.columns() != h.columns() || w.dtype != h.dtype)
        throw Error(text(op, ": ", seen("h", h), " but ", seen("w", w), "; last sizes and types must agree"));
    const DType a = arithmetic_of(h.dtype);
    if (b) expect_shape(op, "b", b, {w.rows()}, a);
    expect_count(op, "targets", targets, h.rows());
    for (std::int64_t n = 0; n < targets.count && h.device == Device::cpu; n++)
        if (targets[n] < 0 || targets[n] >= w.rows())
            throw Error(text(op, ": the target of row ", n, " of ", h.path, " is ", targets[n], ", expected in [0, ",
                             w.rows(), "), the rows of w ", w.path));
    if (!(smoothing >= 0 && smoothing < 1))
        throw Error(text(op, " of ", h.path, ": the label smoothing is ", smoothing, ", expected in [0, 1)"));
    expect_shape(op, "loss", loss, {h.rows()}, a);
    expect_shape(op, "lse", lse, {h.rows()}, a);
    if (weights) expect_shape(op, "weights", weights, {h.rows()}, a);
    if (total) expect_shape(op, "total", total, {1}, a);
    if (h1) expect_shape(op, "h1", h1, h.shape, h.dtype);
    if (w1) expect_shape(op, "w1", w1, w.shape, a);
    if (b1) expect_shape(op, "b1", b1, {w.rows()}, a);
    if (!weights && h.rows() > 0 && (total || h1 || w1 || b1))
        throw Error(text(op, " of ", h.path, ": there are no weights, expected them for total, h1, w1 and b1"));
}

}  // namespace masquerade
