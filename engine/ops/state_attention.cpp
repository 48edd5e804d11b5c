// SPDX-License-Identifier: MIT
// Attention through a bounded state: a head of a document is one chain of keys and queries, in time and memory linear in
// its rows. The backward runs each chain once more for what the queries want, then back for the keys.
#include "engine/math/state.h"
#include "engine/ops/launch.h"
#include "engine/ops/state_plan.h"

namespace masquerade::DEVICE {
namespace {

struct PlanTag {};
struct StateTag {};
struct TraceTag {};

// The numbers that a chain reads.
template <class S, class A>
struct Keys {
    const A* pack[4];
    const S* kv[4];
};

template <class S, class X, class A>
struct Chain {
    StatePlan plan;
    StateShape n;
    int heads;
    bool tied;  // keys are the values
    const X* x;
    Keys<S, A> of;
    A* room;  // of each chain: a state, and what its rows are worked on
    HD int width() const { return heads * n.columns; }                                  // C
    HD int kv_width() const { return n.attends && !tied ? 2 * width() : width(); }       // of a row of kv
    HD int x_width() const { return n.attends ? width() : heads * n.slots; }
    HD int x_columns() const { return n.attends ? n.columns : n.slots; }                // of a head
    HD std::int64_t scratch() const { return 3 * n.slots + 2 * n.columns; }
    HD A* state_of(std::int64_t chain) const { return room + chain * (n.numbers() + scratch()); }
    HD A* scratch_of(std::int64_t chain) const { return state_of(chain) + n.numbers(); }
    HD const X* query(int at, int head) const {
        return x + std::int64_t(plan.query_row[at]) * x_width() + head * x_columns();
    }
    struct Place {
        int source;
        std::int64_t pack, key, value;
    };
    HD Place place(int at, int head) const {
        const std::int64_t row = plan.key_row[at];
        const std::int64_t k = row * kv_width() + head * n.columns;
        return {plan.key_source[at], (row * heads + head) * n.slots, k, n.attends && !tied ? k + width() : k};
    }
    // f(q) for every query of the group that sees any key, when the state holds the keys that it sees.
    template <class Lanes, class F>
    HD void each_query(Lanes lanes, const State<A>& state, int group, int head, A* work, F f) const {
        const int first = plan.first_key[group];
        for (int q = plan.first_query[group], key = first; q < plan.first_query[group + 1]; q++) {
            for (; key < first + plan.query_keys[q]; key++) {
                const Place p = place(key, head);
                const S* kv = of.kv[p.source];
                add_key(lanes, n, state, of.pack[p.source] + p.pack, kv + p.key, kv + p.value, work);
            }
            if (real_of(*state.count) != 0) f(q);
        }
    }
};

template <class S, class X, class A>
struct Forward {
    Chain<S, X, A> chain;
    const A* before;
    S* y;
    A* after;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t i) const {
        const StateShape& n = chain.n;
        const StatePlan& plan = chain.plan;
        const int document = int(i / chain.heads), head = int(i % chain.heads);
        A *at = chain.state_of(i), *work = chain.scratch_of(i);
        const State<A> state(n, at);
        for (int g = plan.first_group[document]; g < plan.first_group[document + 1]; g++) {
            clear_state(lanes, n, at);
            if (before) each(lanes, n.numbers(), [&](int k) { at[k] = before[i * n.numbers() + k]; });
            meet(lanes);
            chain.each_query(lanes, state, g, head, work, [&](int q) {
                read_state(lanes, n, state, chain.query(q, head), work, work + n.slots);
                read_values(lanes, n, state, work, work + 2 * n.slots,
                            y + std::int64_t(plan.query_row[q]) * chain.width() + head * n.columns);
            });
            meet(lanes);
            if (after) each(lanes, n.numbers(), [&](int k) { after[i * n.numbers() + k] = at[k]; });
        }
    }
};

template <class S, class X, class A>
struct Backward {
    Chain<S, X, A> chain;
    const S* dy;
    A* traces;  // (queries of the plan, heads, 4R)
    X* dx;
    bool add;
    A* dpack[4];
    S* dkv[4];
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t i) const {
        const int document = int(i / chain.heads), head = int(i % chain.heads);
        for (int g = chain.plan.first_group[document]; g < chain.plan.first_group[document + 1]; g++) {
            queries_grad(lanes, i, g, head);
            keys_grad(lanes, i, g, head);
        }
    }
    HD QueryTrace<A> trace(int q, int head) const {
        const int R = chain.n.slots;
        return QueryTrace<A>(R, traces + (std::int64_t(q) * chain.heads + head) * 4 * R);
    }
    HD const S* dy_of(int q, int head) const {
        return dy + std::int64_t(chain.plan.query_row[q]) * chain.width() + head * chain.n.columns;
    }
    template <class Lanes>
    HD void queries_grad(Lanes lanes, std::int64_t i, int g, int head) const {
        const StateShape& n = chain.n;
        A *at = chain.state_of(i), *work = chain.scratch_of(i);
        const State<A> state(n, at);
        clear_state(lanes, n, at);
        chain.each_query(lanes, state, g, head, work, [&](int q) {
            X* to = dx ? dx + std::int64_t(chain.plan.query_row[q]) * chain.x_width() + head * chain.x_columns() : nullptr;
            read_grad(lanes, n, state, chain.query(q, head), dy_of(q, head), to, add, trace(q, head), work);
        });
    }
    template <class Lanes>
    HD void keys_grad(Lanes lanes, std::int64_t i, int g, int head) const {
        const StateShape& n = chain.n;
        const StatePlan& plan = chain.plan;
        A *at = chain.state_of(i), *work = chain.scratch_of(i);
        const State<A> wishes(n, at);
        clear_wishes(lanes, n, at);
        int q = plan.first_query[g + 1] - 1;
        for (int key = plan.first_key[g + 1] - 1; key >= plan.first_key[g]; key--) {
            for (; q >= plan.first_query[g] && plan.query_keys[q] > key - plan.first_key[g]; q--)
                add_query(lanes, n, wishes, trace(q, head), chain.query(q, head), dy_of(q, head), work);
            const auto p = chain.place(key, head);
            const S* kv = chain.of.kv[p.source];
            A* ds = dpack[p.source];
            S* d = dkv[p.source];
            key_grad(lanes, n, wishes, chain.of.pack[p.source] + p.pack, kv + p.key, kv + p.value,
                     ds ? ds + p.pack : nullptr, d ? d + p.key : nullptr, d ? d + p.value : nullptr, work);
        }
    }
};

StateShape shape_of(const View& y, const StateRule& rule) {
    return {rule.slots, int(y.columns()) / rule.heads, rule.pack == StatePack::exponential,
            rule.read == StateRead::attend, rule.read == StateRead::kernel, rule.scale, rule.floor};
}

void check_call(const char* op, const View& x, const Views& pack, const Views& kv, const StateRule& rule, const View& y) {
    const DType a = arithmetic_of(y.dtype);
    const bool attends = rule.read == StateRead::attend;
    const std::int64_t C = y.columns(), R = std::int64_t(rule.heads) * rule.slots;
    if (rule.heads < 1 || rule.slots < 1 || C % rule.heads)
        throw Error(text(op, ": ", rule.heads, " heads of ", rule.slots, " slots, but ", seen("y", y)));
    if (!(rule.floor >= 0)) throw Error(text(op, ": floor is ", rule.floor, ", expected at least 0"));
    if (pack.count != kv.count) throw Error(text(op, ": ", pack.count, " packs for ", kv.count, " key/value tensors"));
    expect_shape(op, "x", x, {y.rows(), attends ? C : R}, attends ? y.dtype : a);
    for (int s = 0; s < kv.count; s++) {
        const bool tied = !attends || (kv[0].columns() == C && C > 0);
        expect_shape(op, "kv", kv[s], {kv[s].rows(), tied ? C : 2 * C}, y.dtype);
        expect_shape(op, "pack", pack[s], {kv[s].rows(), R}, a);
    }
}

template <class S, class X, class A>
Chain<S, X, A> chain_of(const View& x, const Views& pack, const Views& kv, const StateRule& rule, const View& y,
                        const std::vector<int>& numbers) {
    Chain<S, X, A> c{state_plan(numbers, table_of<PlanTag>(numbers)), shape_of(y, rule), rule.heads,
                        kv.count > 0 && kv[0].columns() == y.columns(), x.as<X>(), {}, nullptr};
    for (int s = 0; s < kv.count; s++) c.of.pack[s] = pack[s].as<A>(), c.of.kv[s] = kv[s].as<S>();
    const std::int64_t chains = std::int64_t(c.plan.documents) * rule.heads;
    c.room = workspace<StateTag, A>(std::size_t(chains * (c.n.numbers() + c.scratch())));
    return c;
}

// f(S, type of x, A), as values.
template <class F>
void for_types(DType type, const StateRule& rule, F f) {
    for_type(type, [&](auto types) {
        using S = typename decltype(types)::S;
        using A = typename decltype(types)::A;
        if (rule.read == StateRead::attend) f(S(), S(), A());
        else f(S(), A(), A());
    });
}

template <class T>
struct Zero {
    T* to;
    HD void operator()(std::int64_t i) const { to[i] = T(0.0f); }
};
template <class T>
void clear(const View& v) {
    if (v.data) for_each_point(v.count(), Zero<T>{v.as<T>()});
}

}  // namespace

void state_attention_forward(View x, Views pack, Views kv, const SegmentGraph& graph, StateRule rule, View before, View y,
                             View after) {
    const char* op = "state_attention";
    check_call(op, x, pack, kv, rule, y);
    const std::vector<int> numbers = state_plan_numbers(op, graph, kv, true);
    for (const View* v : {&before, &after})
        if (v->data) expect_shape(op, v == &before ? "before" : "after", *v,
                                  {numbers[0], std::int64_t(rule.heads) * shape_of(y, rule).numbers()}, arithmetic_of(y.dtype));
    if (after.data && numbers[1] != numbers[0])
        throw Error(text(op, ": ", numbers[0], " documents in ", numbers[1], " groups of rows leave no one state each"));
    for_types(y.dtype, rule, [&](auto s, auto of_x, auto a) {
        using S = decltype(s);
        using X = decltype(of_x);
        using A = decltype(a);
        clear<S>(y);
        const auto chain = chain_of<S, X, A>(x, pack, kv, rule, y, numbers);
        for_each_long_row(std::int64_t(chain.plan.documents) * rule.heads,
                          Forward<S, X, A>{chain, before.as<A>(), y.as<S>(), after.as<A>()});
    });
}

void state_attention_backward(View dy, View x, Views pack, Views kv, const SegmentGraph& graph, StateRule rule, Grad dx,
                              Grads dpack, Grads dkv) {
    const char* op = "state_attention backward";
    check_call(op, x, pack, kv, rule, dy);
    expect_grad(op, "dx", dx, x);
    for (int s = 0; s < dkv.count; s++) {
        expect_grad(op, "dpack", dpack[s], pack[s]);
        expect_grad(op, "dkv", dkv[s], kv[s]);
    }
    const std::vector<int> numbers = state_plan_numbers(op, graph, kv, false);
    for_types(dy.dtype, rule, [&](auto s, auto of_x, auto a) {
        using S = decltype(s);
        using X = decltype(of_x);
        using A = decltype(a);
        if (!dx.add) clear<X>(dx.view);
        const auto chain = chain_of<S, X, A>(x, pack, kv, rule, dy, numbers);
        A* traces = workspace<TraceTag, A>(std::size_t(chain.plan.queries) * std::size_t(rule.heads * rule.slots * 4));
        Backward<S, X, A> f{chain, dy.as<S>(), traces, dx.view.as<X>(), dx.add, {}, {}};
        for (int k = 0; k < dkv.count; k++) {
            if (!dpack[k].add) clear<A>(dpack[k].view);
            if (!dkv[k].add) clear<S>(dkv[k].view);
            f.dpack[k] = dpack[k].view.as<A>(), f.dkv[k] = dkv[k].view.as<S>();
        }
        for_each_long_row(std::int64_t(chain.plan.documents) * rule.heads, f);
    });
}

}  // namespace masquerade::DEVICE
