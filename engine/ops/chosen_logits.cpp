// SPDX-License-Identifier: MIT
// The op chosen_logits computes the log-sum-exp of every row of logits, and the logits of chosen pairs of a slot and a
// token. A slot is a place at which an insertion decoder may insert a token. Each slot has K rows of logits; the rows
// of slot m begin at row mK. Rows are processed in blocks: one matrix product computes all logits of a block, and one
// pass over each row computes its log-sum-exp and picks the chosen logits. The backward computes the logits again,
// replaces them by their gradients, and passes the gradients to the backward of linear.
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

// A block of consecutive rows of logits. Row r of the block is row `begin` + r of all rows. K consecutive rows belong
// to each slot, a place for a new token.
template <class A>
struct Block {
    A* logits;
    const A* bias;
    Ints groups, slots, tokens;
    std::int64_t begin;
    int V, K;
    // If there is a bias, adds row groups[m] of the bias to the logits of row r, where m = (begin + r) / K is the slot
    // of row r. Returns the logits of row r.
    HD A* row(Lanes lanes, std::int64_t r) const {
        A* x = logits + r * V;
        const A* more = bias ? bias + std::int64_t(groups.data[(begin + r) / K]) * V : nullptr;
        if (bias) each(lanes, V, [&](int i) { x[i] += more[i]; });
        meet(lanes);
        return x;
    }
    // The entries [from(r), to(r)) of `slots` and `tokens` are the chosen pairs (slot, token) with the slot of row r.
    HD std::int64_t from(std::int64_t r) const { return count_below(slots.data, slots.count, (begin + r) / K); }
    HD std::int64_t to(std::int64_t r) const { return count_below(slots.data, slots.count, (begin + r) / K + 1); }
    // z and dz have K numbers for each chosen pair, one for each row of logits of the pair's slot. Returns the index in
    // z and dz of the number for pair j and row r.
    HD std::int64_t at(std::int64_t r, std::int64_t j) const { return j * K + (begin + r) % K; }
};

template <class A>
struct Forward {
    Block<A> of;
    A *z, *lse;
    HD void operator()(Lanes lanes, std::int64_t r) const {
        const A* x = of.row(lanes, r);
        A all;
        if constexpr (std::is_same_v<A, float>)
            all = log_sum_exp(lanes, x, of.V);
        else
            all = masquerade::log_sum_exp(lanes, of.V, [&](int i) { return x[i]; });
        if (first(lanes)) lse[of.begin + r] = all;
        const std::int64_t from = of.from(r);
        each(lanes, int(of.to(r) - from), [&](int j) { z[of.at(r, from + j)] = x[of.tokens.data[from + j]]; });
    }
};

// Replaces the logits by their gradients, which have the arithmetic type A. If the storage type S is another type,
// also stores the gradients rounded to S.
template <class S, class A>
struct Backward {
    Block<A> of;
    const A *dz, *dlse, *lse;
    S* rounded;
    HD void operator()(Lanes lanes, std::int64_t r) const {
        A* x = of.row(lanes, r);
        const A g = dlse[of.begin + r], all = lse[of.begin + r];
        if (g == A(0))
            each(lanes, of.V, [&](int i) { x[i] = A(0); });
        else
            each(lanes, of.V, [&](int i) { x[i] = g * exp_of(x[i] - all); });
        meet(lanes);
        if (first(lanes))
            for (std::int64_t j = of.from(r), to = of.to(r); j < to; j++) x[of.tokens.data[j]] += dz[of.at(r, j)];
        meet(lanes);
        if (!std::is_same_v<S, A>) store(lanes, of.V, rounded + r * of.V, false, [&](int i) { return x[i]; });
    }
};

// Computes 256 columns of row g of dbias: sums the gradients of the logits over those rows of the block whose slot m is
// in group g (groups[m] = g), in row order.
template <class A>
struct GroupSums {
    Block<A> of;
    std::int64_t rows;
    A* to;
    bool add;
    int parts;
    static constexpr int columns = 256;
    HD void operator()(Lanes lanes, std::int64_t item) const {
        const std::int64_t g = item / parts, c = item % parts * columns, V = of.V;
        const int width = int(V - c < columns ? V - c : columns);
        std::int64_t begin = count_below(of.groups.data, of.groups.count, g) * of.K - of.begin,
                     end = count_below(of.groups.data, of.groups.count, g + 1) * of.K - of.begin;
        begin = begin > 0 ? begin : 0, end = end < rows ? end : rows;
        A* sums = to + g * V + c;
        if (!add && begin >= end) store(lanes, width, sums, false, [](int) { return A(0); });
        for (std::int64_t r = begin; r < end; r++)
            store(lanes, width, sums, add || r > begin, [&](int i) { return of.logits[r * V + c + i]; });
    }
};

// Checks the arguments, except for the shapes and types that ops.h states. Returns K, the number of rows per slot.
int check(const char* op, const View& h, const View& w, const View& bias, const Ints& groups, const Ints& slots,
          const Ints& tokens) {
    if (w.columns() < 1 || h.columns() < 1) throw Error(op, ": ", seen("h", h), ", expected columns");
    if (bias) {
        expect_count(op, "groups", groups, h.rows());
        expect_rows(op, "group", groups, bias);
        expect_ascending(op, "group", groups, bias);
    }
    expect_rows(op, "slot", slots, h);
    expect_ascending(op, "slot", slots, h);
    expect_rows(op, "token", tokens, w);
    return int(h.columns() / w.columns());
}

View as_rows(View h, int K) {
    h.shape = {h.rows() * K, h.columns() / K};
    return h;
}

// Calls f(types, first row, logits) for each block of rows of h (M K,E). h has K rows of E numbers for each of the M
// slots. The logits contain b, but not `bias`, which Block::row() adds. If h has no rows, f is called for one empty
// block, because the backward must then store gradients of 0.
template <class F>
void each_block(const View& h, const View& w, const View& b, F f) {
    for_type(h.dtype, [&]<class S, class A>(S, A) {
        std::int64_t n = 0;
        do {
            const std::int64_t rows = rows_of_next_block(h.rows() - n, w.rows());
            const View logits{workspace<Logits, A>(rows * w.rows()), dtype_of<A>, h.device, {rows, w.rows()}, "logits"};
            linear_forward(rows_of(h, n, rows), w, b, logits);
            f(S(), A(), n, logits);
            n += rows;
        } while (n < h.rows());
    });
}

}  // namespace

void chosen_logits_forward(View h, View w, View b, View bias, Ints groups, Ints slots, Ints tokens, View z, View lse) {
    const int K = check("chosen_logits", h, w, bias, groups, slots, tokens);
    each_block(as_rows(h, K), w, b, [&]<class S, class A>(S, A, std::int64_t n, View logits) {
        const Block<A> block{logits.as<A>(), bias.as<A>(), groups, slots, tokens, n, int(w.rows()), K};
        for_each_row(logits.rows(), Forward<A>{block, z.as<A>(), lse.as<A>()});
    });
}

void chosen_logits_backward(View dz, View dlse, View h, View w, View b, View bias, View lse, Ints groups, Ints slots,
                            Ints tokens, Grad dh, Grad dw, Grad db, Grad dbias) {
    const int K = check("chosen_logits backward", h, w, bias, groups, slots, tokens);
    if (!dh && !dw && !db && !dbias) return;
    h = as_rows(h, K);
    if (dh) dh.view = as_rows(dh.view, K);
    each_block(h, w, b, [&]<class S, class A>(S, A, std::int64_t n, View logits) {
        const std::int64_t rows = logits.rows(), V = w.rows();
        View dlogits = logits;
        dlogits.dtype = dtype_of<S>;
        if (!std::is_same_v<S, A>) dlogits.data = workspace<Rounded, S>(rows * V);
        const Block<A> block{logits.as<A>(), bias.as<A>(), groups, slots, tokens, n, int(V), K};
        for_each_row(rows, Backward<S, A>{block, dz.as<A>(), dlse.as<A>(), lse.as<A>(), dlogits.as<S>()});

        const View some = rows_of(h, n, rows);
        const auto later = [n](Grad g) { return Grad{g.view, g.add || n > 0}; };
        linear_backward(dlogits, some, w, dh ? Grad{rows_of(dh.view, n, rows), dh.add} : Grad{}, later(dw), Grad{});
        if (db) linear_backward(logits, some, w, Grad{}, Grad{}, later(db));
        if (!dbias) return;
        const int parts = int((V + GroupSums<A>::columns - 1) / GroupSums<A>::columns);
        for_each_row(bias.rows() * parts, GroupSums<A>{block, rows, dbias.as<A>(), later(dbias).add, parts});
    });
}

}  // namespace masquerade::DEVICE
