// SPDX-License-Identifier: MIT
// The chains of state_attention. A chain consists of the keys and queries of one head and one group (state_plan.h). The
// time and memory for a chain are linear in its number of rows. A chain is cut into pieces, that is, stretches of its
// keys and queries, so that several threads can work on it. There are three passes. The first pass computes the total
// of each piece, that is, the state that contains only the keys of the piece. The second pass computes the state before
// each piece; start_pieces() runs these two passes. The third pass (state_attention.cpp, state_attention_backward.cpp)
// runs through each piece, starting with the state before this piece.
#pragma once
#include <limits>

#include "engine/math/state.h"
#include "engine/ops/launch.h"
#include "engine/ops/state_plan.h"

namespace masquerade::DEVICE {

struct PlanTag {};
struct StateTag {};

// The arguments and the working memory of a call of state_attention. A group is cut into pieces, that is, stretches of
// its keys and queries. For each head, `states` has one state before every piece, and one more entry at the end of
// every group, which only the backward uses. `scratches` has scratch memory for every piece.
template <class S, class X, class A>
struct Chains {
    StatePlan plan;
    StateShape n;
    int heads;
    bool tied;  // true if each row of kv is both key and value
    const X* x;
    // Up to four tensors with keys and values, and the tensors with the packs and gates of the same keys. The pack of a
    // key says how much of the key each of the R slots absorbs (engine/math/state.h).
    std::array<A*, 4> pack;
    std::array<S*, 4> kv;
    std::array<A*, 4> gate;
    A *states, *scratches;
    HD int width() const { return heads * n.columns; }                              // C, the width of a row of y
    HD int kv_width() const { return n.attends && !tied ? 2 * width() : width(); }  // width of a row of kv
    HD int x_width() const { return n.attends ? width() : heads * n.slots; }
    HD int x_columns() const { return n.attends ? n.columns : n.slots; }  // columns of x per head
    HD std::int64_t scratch_numbers() const { return 3 * n.slots + 2 * n.columns; }
    HD A* scratch(std::int64_t i) const { return scratches + i * scratch_numbers(); }
    // Returns the state at entry `at` of `states`. Entry p + g is the state before piece p, which belongs to group g;
    // after the entries of a group's pieces, there is one more entry for the end of the group.
    HD State<A> state(int at, int head) const {
        return State<A>(n, states + (std::int64_t(at) * heads + head) * n.numbers());
    }
    HD const X* query(int q, int head) const {
        return x + std::int64_t(plan.query_row[q]) * x_width() + head * x_columns();
    }
    struct Place {
        int source;
        std::int64_t pack, key, value, gate;
    };
    HD Place place(int at, int head) const {
        const std::int64_t row = plan.key_row[at], k = row * kv_width() + head * n.columns;
        return {plan.key_source[at], (row * heads + head) * n.packs(), k, n.attends && !tied ? k + width() : k,
                row * heads + head};
    }
    HD StateKey<S, A> key_at(const Place& p) const {
        return {pack[p.source] + p.pack, kv[p.source] + p.key, kv[p.source] + p.value,
                n.gated ? gate[p.source] + p.gate : nullptr};
    }
    // Adds the keys of piece p (a stretch of the keys and queries of a chain) to the state. Calls on_query(q) for every
    // query of the piece that sees any key, as soon as the state contains exactly the keys that q sees. If `all` is
    // false, keys that no query of the piece sees are not added.
    template <class F>
    HD void forth(Lanes lanes, const State<A>& state, int p, int head, A* work, bool all, F on_query) const {
        const int at = p + plan.group[p];
        int key = plan.key[at];
        const auto take_up = [&](int end) {
            for (; key < end; key++) add_key(lanes, n, state, key_at(place(key, head)), work);
        };
        for (int q = plan.query[at]; q < plan.query[at + 1]; q++) {
            take_up(plan.query_end[q]);
            if (real_of(*state.count) != 0) on_query(q);
        }
        if (all) take_up(plan.key[at + 1]);
    }
};

// Computes the total of each piece (a stretch of a chain's keys and queries), that is, the state that contains only the
// keys of the piece. Stores the total of piece p in the entry of Chains::states for the state before piece p + 1. The
// last piece of a group is left out, because no later piece needs its total.
template <class S, class X, class A>
struct Totals {
    Chains<S, X, A> chains;
    HD void operator()(Lanes lanes, std::int64_t i) const {
        const int p = int(i / chains.heads), head = int(i % chains.heads), g = chains.plan.group[p];
        if (p + 1 == chains.plan.first_piece[g + 1]) return;  // the last piece of the group
        const State<A> own = chains.state(p + g + 1, head);
        clear_state(lanes, chains.n, own);
        chains.forth(lanes, own, p, head, chains.scratch(i), true, [](int) {});
    }
};
// Computes the state before every piece of a group, by joining the totals of the earlier pieces. A total is the state
// that contains only the keys of one piece. Works in place: adds all earlier keys to the total that is stored in each
// entry. If `before` is not null, it contains the state before the first piece; otherwise the state before the first
// piece is empty.
template <class S, class X, class A>
struct Starts {
    Chains<S, X, A> chains;
    const A* before;
    HD void operator()(Lanes lanes, std::int64_t i) const {
        const StateShape& n = chains.n;
        const StatePlan& plan = chains.plan;
        const int g = int(i / chains.heads), head = int(i % chains.heads);
        State<A> state = chains.state(plan.first_piece[g] + g, head);
        clear_state(lanes, n, state);
        const std::int64_t from = (std::int64_t(plan.document[g]) * chains.heads + head) * n.numbers();
        if (before) each(lanes, n.numbers(), [&](int k) { state.begin()[k] = before[from + k]; });
        for (int p = plan.first_piece[g]; p + 1 < plan.first_piece[g + 1]; p++) {
            const State<A> next = chains.state(p + g + 1, head);
            join_states(lanes, n, state, next, chains.scratch(i));
            state = next;
        }
    }
};

inline StateShape shape_of(const View& y, const StateRule& rule) {
    return {rule.slots,
            int(y.columns()) / rule.heads,
            /*exponential=*/rule.pack == StatePack::exponential,
            /*gated=*/rule.pack == StatePack::gated,
            /*attends=*/rule.read == StateRead::attend,
            /*kernel=*/rule.read == StateRead::kernel,
            /*paired=*/rule.pack == StatePack::pair,
            rule.scale,
            rule.floor};
}

inline void check_call(const char* op, const View& x, const Views& pack, const Views& kv, const Views& gate,
                       const StateRule& rule, const View& y) {
    const DType a = arithmetic_of(y.dtype);
    const bool attends = rule.read == StateRead::attend;
    const std::int64_t C = y.columns(), R = std::int64_t(rule.heads) * rule.slots,
                       packs = rule.pack == StatePack::pair ? 2 * R : R;
    if (rule.heads < 1 || rule.slots < 1 || rule.piece < 1 || C % rule.heads)
        throw Error(op, ": ", rule.heads, " heads of ", rule.slots, " slots, pieces of ", rule.piece, ", but ",
                    seen("y", y));
    const StateShape n = shape_of(y, rule);
    const std::int64_t state = 1 + 2 * std::int64_t(n.slots) + std::int64_t(n.slots) * n.columns * (attends ? 2 : 1);
    if (state > std::numeric_limits<int>::max())  // StateShape::numbers() is an int
        throw Error(op, ": the state of a head with ", n.slots, " slots of ", n.columns, " columns has ", state,
                    " numbers, expected fewer than 2^31: choose fewer slots or more heads");
    if (!(rule.floor >= 0)) throw Error(op, ": floor is ", rule.floor, ", expected at least 0");
    if (rule.pack == StatePack::gated && rule.read != StateRead::kernel) throw Error(op, ": only a kernel has gates");
    if (rule.pack == StatePack::pair && !attends)
        throw Error(op, ": only slots that queries attend to have a pair of packs");
    const int gates = rule.pack == StatePack::gated ? kv.count : 0;
    if (pack.count != kv.count || gate.count != gates)
        throw Error(op, ": ", pack.count, " packs and ", gate.count, " gates, expected ", kv.count, " and ", gates);
    expect_shape(op, "x", x, {y.rows(), attends ? C : R}, attends ? y.dtype : a);
    for (int s = 0; s < kv.count; s++) {
        const bool tied = !attends || (kv[0].columns() == C && C > 0);
        expect_shape(op, "kv", kv[s], {kv[s].rows(), tied ? C : 2 * C}, y.dtype);
        expect_shape(op, "pack", pack[s], {kv[s].rows(), packs}, a);
        if (gates) expect_shape(op, "gate", gate[s], {kv[s].rows(), rule.heads}, a);
    }
}

template <class S, class X, class A>
Chains<S, X, A> chains_of(const View& x, const Views& pack, const Views& kv, const Views& gate, const StateRule& rule,
                          const View& y, const std::vector<int>& numbers) {
    Chains<S, X, A> c{state_plan(numbers, table_of<PlanTag>(numbers)),
                      shape_of(y, rule),
                      rule.heads,
                      kv.count > 0 && kv[0].columns() == y.columns(),
                      x.as<X>(),
                      pack.as<A>(),
                      kv.as<S>(),
                      gate.as<A>(),
                      nullptr,
                      nullptr};
    const std::int64_t states = std::int64_t(c.plan.pieces + c.plan.groups) * rule.heads * c.n.numbers();
    c.states = workspace<StateTag, A>(states + c.plan.pieces * rule.heads * c.scratch_numbers());
    c.scratches = c.states + states;
    return c;
}

// Computes the state before every piece. A piece is a stretch of keys and queries that one thread or warp processes.
// First computes the totals of the pieces (Totals), then the states (Starts).
template <class S, class X, class A>
void start_pieces(const Chains<S, X, A>& chains, const A* before) {
    const StatePlan& plan = chains.plan;
    if (plan.pieces > plan.groups) for_each_long_row(std::int64_t(plan.pieces) * chains.heads, Totals<S, X, A>{chains});
    for_each_long_row(std::int64_t(plan.groups) * chains.heads, Starts<S, X, A>{chains, before});
}

// Calls f(S(), X(), A()), where X is the type of x: S if queries attend to the slots, else A.
template <class F>
void for_types(DType type, const StateRule& rule, F f) {
    for_type(type, [&]<class S, class A>(S, A) {
        if (rule.read == StateRead::attend)
            f(S(), S(), A());
        else
            f(S(), A(), A());
    });
}

template <class T>
struct Zero {
    T* to;
    HD void operator()(std::int64_t i) const { to[i] = T(0.0f); }
};
// Stores zeros in a gradient, unless it is absent or is added to.
template <class T>
void clear(const Grad& to) {
    if (to && !to.add) for_each_point(to.view.count(), Zero<T>{to.as<T>()});
}

}  // namespace masquerade::DEVICE
