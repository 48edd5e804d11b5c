// SPDX-License-Identifier: MIT
// The ops gather_rows, replace_rows and store_rows, and the forward of embedding, all of which copy rows from one
// tensor to another. Also the op max_rows, which computes the maximum over a range of rows.
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// Copies the row x to y or, if `add` is set, adds it. A null x stands for a row of zeros.
template <class S, class Lanes>
HD void move_row(Lanes lanes, Row<Lanes, const S> x, Row<Lanes, S> y, bool add, int C) {
    if (x)
        store(lanes, C, y, add, [&](auto i) { return x[i]; });
    else
        store(lanes, C, y, add, [](auto) { return S(); });
}

// Calls move_row() for row from[m] of x and row to[m] of y, for m < count. A null pointer `from` stands for
// from[m] = m, and a null pointer `to` for to[m] = m. An absent view x stands for rows of zeros.
void move(std::int64_t count, const View& x, const int* from, const int* to, const View& y, bool add) {
    for_packet_rows(y, count, [&]<class S, class A, class Lanes>(S, A, Lanes) {
        return row_call<move_row<S, Lanes>>(chosen_row<S>(x, from), chosen_row<S>(y, to), add, y.columns());
    });
}

// Copies row `which` of u to the row y. If `which` is negative, copies the row x instead.
template <class S, class Lanes>
HD void replace_row(Lanes lanes, Row<Lanes, const S> x, Row<Lanes, const S> u, int which, Row<Lanes, S> y, int C) {
    const auto source = which < 0 ? x : u + std::int64_t(which) * C;
    store(lanes, C, y, false, [&](auto i) { return source[i]; });
}

// If row x was replaced (`which` >= 0), dy is the gradient of row `which` of u, and dx is 0. Otherwise, dx = dy.
template <class S, class Lanes>
HD void replace_row_grad(Lanes lanes, Row<Lanes, const S> dy, int which, Row<Lanes, S> dx, bool add_x, Row<Lanes, S> du,
                         bool add_u, int C) {
    auto given = [&](auto i) { return dy[i]; };
    bool replaced = which >= 0;
    if (dx && replaced) store(lanes, C, dx, add_x, [](auto) { return S(); });
    if (dx && !replaced) store(lanes, C, dx, add_x, given);
    if (du && replaced) store(lanes, C, du + std::int64_t(which) * C, add_u, given);
}

// Returns the first row of [begin, end) with the largest x[row * C]; NaN counts as the largest. Returns -1 if there is
// no row.
template <class A, class S>
HD int top_row(const S* x, int begin, int end, std::int64_t C) {
    int best = begin < end ? begin : -1;
    for (int n = begin + 1; n < end; n++) {
        const auto value = real_of(A(x[n * C])), most = real_of(A(x[best * C]));
        if (value > most || (value != value && most == most)) best = n;
    }
    return best;
}
// The op max_rows for one row of y. max_row stores the maximum, in each column, of the rows [first[0], first[1]) of x,
// or 0 if there is no row. max_row_grad computes the gradient of these rows.
template <class S, class A>
HD void max_row(Lanes lanes, const S* x, const int* first, S* y, int C) {
    each(lanes, C, [&](int c) {
        const std::int64_t n = top_row<A>(x + c, first[0], first[1], C);
        y[c] = n < 0 ? S() : x[n * C + c];
    });
}
template <class S, class A>
HD void max_row_grad(Lanes lanes, const S* dy, const S* x, const int* first, S* dx, bool add, int C) {
    each(lanes, C, [&](int c) {
        const int top = top_row<A>(x + c, first[0], first[1], C);
        for (std::int64_t n = first[0]; n < first[1]; n++) put(dx[n * C + c], n == top ? A(dy[c]) : A(0), add);
    });
}

}  // namespace

void gather_rows_forward(View x, Ints rows, View y) {
    expect_rows("gather_rows", "row", rows, x);
    move(rows.count, x, rows.data, nullptr, y, false);
}

void embedding_forward(Ints ids, View w, View y) {
    expect_rows("embedding", "id", ids, w);
    move(ids.count, w, ids.data, nullptr, y, false);
}

void gather_rows_backward(View dy, Ints rows, Grad dx) {
    if (!dx) return;
    expect_rows("gather_rows backward", "row", rows, dx.view);
    if (!dx.add) move(dx.view.rows(), View{}, nullptr, nullptr, dx.view, false);
    move(rows.count, dy, nullptr, rows.data, dx.view, dx.add);
}

void max_rows_forward(View x, Ints first, View y) {
    expect_parts("max_rows", "first rows", first, y.rows(), x.rows(), x);
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        for_each_row(y.rows(), row_call<max_row<S, A>>(x.as<S>(), first, y, x.columns()));
    });
}

void max_rows_backward(View dy, View x, Ints first, Grad dx) {
    expect_parts("max_rows backward", "first rows", first, dy.rows(), x.rows(), x);
    if (!dx) return;
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        for_each_row(dy.rows(), row_call<max_row_grad<S, A>>(dy, x.as<S>(), first, dx.as<S>(), dx.add, x.columns()));
    });
}

void store_rows(View x, Ints rows, View y) {
    expect_rows("store_rows", "row", rows, y);
    move(rows.count, x, nullptr, rows.data, y, false);
}

void replace_rows_forward(View x, Ints which, View u, View y) {
    expect_rows("replace_rows", "row of u", which, u, true);
    for_packet_rows(x, x.rows(), [&]<class S, class A, class Lanes>(S, A, Lanes) {
        return row_call<replace_row<S, Lanes>>(x, u.as<S>(), which, y, x.columns());
    });
}

void replace_rows_backward(View dy, Ints which, Grad dx, Grad du) {
    if (du) expect_rows("replace_rows backward", "row of du", which, du.view, true);
    for_packet_rows(dy, dy.rows(), [&]<class S, class A, class Lanes>(S, A, Lanes) {
        return row_call<replace_row_grad<S, Lanes>>(dy, which, dx, du.as<S>(), du.add, dy.columns());
    });
}

}  // namespace masquerade::DEVICE
