// SPDX-License-Identifier: MIT
// Logits of chosen rows and tokens, and the log of the sum of exp of every row. Rows go by blocks: the logits of a block for
// all words are one product, a sweep a row reads them; the backward makes them again, turns them into their gradients and
// has linear's backward carry those on.
#include "engine/math/row.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"
#ifdef HAS_WARPS
#include "engine/ops/cuda/logits.h"
#else
#include "engine/ops/cpu/logits.h"
#endif

namespace masquerade::DEVICE {
namespace {

struct Logits {};
struct Rounded {};

// How many of the ascending numbers are below `value`.
HD std::int64_t count_below(const Ints& ascending, std::int64_t value) {
    std::int64_t low = 0, high = ascending.count;
    while (low < high) {
        const std::int64_t middle = (low + high) / 2;
        if (ascending.data[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low;
}

// A block of rows, the first of which is row `begin` of all.
template <class A>
struct Block {
    A* logits;
    const A* bias;
    Ints groups, rows, tokens;
    std::int64_t begin;
    int V;
    // The row's logits, complete.
    template <class Lanes>
    HD A* row(Lanes lanes, std::int64_t r) const {
        A* x = logits + r * V;
        const A* more = bias ? bias + std::int64_t(groups.data[begin + r]) * V : nullptr;
        if (bias) each(lanes, V, [&](int i) { x[i] += more[i]; });
        meet(lanes);
        return x;
    }
};

template <class A>
struct Forward {
    Block<A> of;
    A *z, *lse;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t r) const {
        const A* x = of.row(lanes, r);
        A all;
        if constexpr (std::is_same_v<A, float>) all = log_sum_exp(lanes, x, of.V);
        else all = masquerade::log_sum_exp(lanes, of.V, [&](int i) { return x[i]; });
        if (first(lanes)) lse[of.begin + r] = all;
        const std::int64_t from = count_below(of.rows, of.begin + r), to = count_below(of.rows, of.begin + r + 1);
        each(lanes, int(to - from), [&](int j) { z[from + j] = x[of.tokens.data[from + j]]; });
    }
};

// Logits become their gradients, of type A in their place and, where S is another type, rounded beside it.
template <class S, class A>
struct Backward {
    Block<A> of;
    const A *dz, *dlse, *lse;
    S* rounded;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t r) const {
        A* x = of.row(lanes, r);
        const A g = dlse[of.begin + r], all = lse[of.begin + r];
        if (g == A(0)) each(lanes, of.V, [&](int i) { x[i] = A(0); });
        else each(lanes, of.V, [&](int i) { x[i] = g * exp_of(x[i] - all); });
        meet(lanes);
        const std::int64_t from = count_below(of.rows, of.begin + r), to = count_below(of.rows, of.begin + r + 1);
        if (first(lanes))
            for (std::int64_t j = from; j < to; j++) x[of.tokens.data[j]] += dz[j];
        meet(lanes);
        if (!std::is_same_v<S, A>) store(lanes, of.V, rounded + r * of.V, false, [&](int i) { return x[i]; });
    }
};

// dbias of one group, a stretch of columns: the rows of the block that belong to it, in order.
template <class A>
struct GroupSums {
    const A* dlogits;
    Ints groups;  // of the block's rows
    A* to;
    bool add;
    int V, parts;
    static constexpr int columns = 256;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t item) const {
        const std::int64_t g = item / parts, c = item % parts * columns;
        const int width = int(V - c < columns ? V - c : columns);
        const std::int64_t begin = count_below(groups, g), end = count_below(groups, g + 1);
        A* sums = to + g * V + c;
        if (!add && begin == end) store(lanes, width, sums, false, [](int) { return A(0); });
        for (std::int64_t r = begin; r < end; r++)
            store(lanes, width, sums, add || r > begin, [&](int i) { return dlogits[r * V + c + i]; });
    }
};

void check(const char* op, const View& h, const View& w, const View& b, const View& bias, const Ints& groups, const Ints& rows,
           const Ints& tokens, const View& z, const View& lse) {
    const DType a = arithmetic_of(h.dtype);
    expect_shape(op, "w", w, {w.rows(), h.columns()}, h.dtype);
    if (b) expect_shape(op, "b", b, {w.rows()}, a);
    if (bias) {
        expect_shape(op, "bias", bias, {bias.rows(), w.rows()}, a);
        expect_count(op, "groups", groups, h.rows());
        expect_rows(op, "group", groups, bias);
        expect_ascending(op, "group", groups, bias);
    }
    expect_count(op, "tokens", tokens, rows.count);
    expect_rows(op, "row", rows, h);
    expect_ascending(op, "row", rows, h);
    expect_rows(op, "token", tokens, w);
    expect_shape(op, "z", z, {rows.count}, a);
    expect_shape(op, "lse", lse, {h.rows()}, a);
}

// f(types, first row, logits of some rows without their bias); once even where there are no rows: zeros must be stored.
template <class F>
void each_block(const View& h, const View& w, const View& b, F f) {
    for_type(h.dtype, [&](auto types) {
        using A = typename decltype(types)::A;
        std::int64_t n = 0;
        do {
            const std::int64_t rows = rows_of_next_block(h.rows() - n, w.rows());
            const View logits{workspace<Logits, A>(rows * w.rows()), dtype_of<A>, h.device, {rows, w.rows()}, "logits"};
            linear_forward(rows_of(h, n, rows), w, b, logits);
            f(types, n, logits);
            n += rows;
        } while (n < h.rows());
    });
}

}  // namespace

void chosen_logits_forward(View h, View w, View b, View bias, Ints groups, Ints rows, Ints tokens, View z, View lse) {
    check("chosen_logits", h, w, b, bias, groups, rows, tokens, z, lse);
    each_block(h, w, b, [&](auto types, std::int64_t n, View logits) {
        using A = typename decltype(types)::A;
        const Block<A> block{logits.as<A>(), bias.as<A>(), groups, rows, tokens, n, int(w.rows())};
        for_each_row(logits.rows(), Forward<A>{block, z.as<A>(), lse.as<A>()});
    });
}

void chosen_logits_backward(View dz, View dlse, View h, View w, View b, View bias, View lse, Ints groups, Ints rows, Ints tokens,
                            Grad dh, Grad dw, Grad db, Grad dbias) {
    const char* op = "chosen_logits backward";
    check(op, h, w, b, bias, groups, rows, tokens, dz, lse);
    expect_same_shape(op, "dlse", dlse, "lse", lse);
    expect_grad(op, "dh", dh, h);
    expect_grad(op, "db", db, b);
    expect_grad(op, "dbias", dbias, bias);
    if (!dh && !dw && !db && !dbias) return;
    each_block(h, w, b, [&](auto types, std::int64_t n, View logits) {
        using S = typename decltype(types)::S;
        using A = typename decltype(types)::A;
        const std::int64_t count = logits.rows(), V = w.rows();
        View dlogits = logits;
        dlogits.dtype = dtype_of<S>;
        if (!std::is_same_v<S, A>) dlogits.data = workspace<Rounded, S>(count * V);
        const Block<A> block{logits.as<A>(), bias.as<A>(), groups, rows, tokens, n, int(V)};
        for_each_row(count, Backward<S, A>{block, dz.as<A>(), dlse.as<A>(), lse.as<A>(), dlogits.as<S>()});

        const View some = rows_of(h, n, count);
        const auto later = [n](Grad g) { return Grad{g.view, g.add || n > 0}; };
        linear_backward(dlogits, some, w, dh ? Grad{rows_of(dh.view, n, count), dh.add} : Grad{}, later(dw), {});
        if (db) linear_backward(logits, some, w, {}, {}, later(db));
        if (!dbias) return;
        constexpr int columns = GroupSums<A>::columns;
        const int parts = int((V + columns - 1) / columns);
        for_each_row(bias.rows() * parts, GroupSums<A>{logits.as<A>(), {groups.data + n, count}, dbias.view.as<A>(),
                                                       later(dbias).add, int(V), parts});
    });
}

}  // namespace masquerade::DEVICE
