// SPDX-License-Identifier: MIT
// The backward of state_attention. A group consists of query segments of one document that share a list of keys. A
// chain is one head of a group: its keys and queries (state_chains.h). The backward runs through each chain twice. The
// first run, from the first key to the last, computes the gradients of the queries. The second run, from the last key
// to the first, computes the gradients of the keys. The state of the second run is called the adjoint
// (engine/math/state.h).
#include "engine/ops/launch.h"
#include "engine/ops/state_chains.h"

namespace masquerade::DEVICE {
namespace {

struct TraceTag {};

template <class S, class X, class A>
struct Backward {
    Chains<S, X, A> chains;
    const S* dy;
    // (queries,H,4R): for each query and each of H heads, a QueryTrace (4 R numbers for R slots), which read_grad()
    // computes for the backward of the keys.
    A* traces;
    // (keys,H), only used if there are gates: the result of key_grad() for each key and head. It is the derivative of
    // the loss with respect to log f, where f is a factor that multiplies all weights of the key.
    A* growths;
    X* dx;
    bool add;
    std::array<A*, 4> dpack;
    std::array<S*, 4> dkv;
    std::array<A*, 4> dgate;
    HD QueryTrace<A> trace(int q, int head) const {
        const int R = chains.n.slots;
        return QueryTrace<A>(R, traces + (std::int64_t(q) * chains.heads + head) * 4 * R);
    }
    HD const S* dy_of(int q, int head) const {
        return dy + std::int64_t(chains.plan.query_row[q]) * chains.width() + head * chains.n.columns;
    }
    HD void queries(Lanes lanes, std::int64_t i) const {
        const int p = int(i / chains.heads), head = int(i % chains.heads);
        A* work = chains.scratch(i);
        const State<A> state = chains.state(p + chains.plan.group[p], head);
        chains.forth(lanes, state, p, head, work, false, [&](int q) {
            X* to = dx ? dx + std::int64_t(chains.plan.query_row[q]) * chains.x_width() + head * chains.x_columns()
                       : nullptr;
            read_grad(lanes, chains.n, state, chains.query(q, head), dy_of(q, head), to, add, trace(q, head), work);
        });
    }
    // Adds the queries of piece p (a stretch of the keys and queries of a chain) to the adjoint (the state of the
    // backward), last query first. Calls on_key(key) for every key of the piece, last key first, as soon as the adjoint
    // contains all queries that see the key.
    template <class F>
    HD void back(Lanes lanes, const State<A>& adjoint, int p, int head, A* work, F on_key) const {
        const StatePlan& plan = chains.plan;
        const int at = p + plan.group[p], none = plan.key[plan.first_piece[plan.group[p]] + plan.group[p]];
        int q = plan.query[at + 1] - 1;
        const auto take_up = [&](int key) {
            for (; q >= plan.query[at] && plan.query_end[q] > key; q--)
                add_query(lanes, chains.n, adjoint, trace(q, head), chains.query(q, head), dy_of(q, head), work);
        };
        for (int key = plan.key[at + 1] - 1; key >= plan.key[at]; key--) {
            take_up(key);
            on_key(key);
            if (chains.n.gated) fade_adjoint(lanes, chains.n, adjoint, chains.key_at(chains.place(key, head)).gate);
        }
        take_up(none);
    }
    HD void totals(Lanes lanes, std::int64_t i) const {
        const int p = int(i / chains.heads), head = int(i % chains.heads), g = chains.plan.group[p];
        // The total of a piece is the adjoint that contains only the queries of the piece. Only earlier pieces of the
        // group need it, so it is not computed for the first piece.
        if (p == chains.plan.first_piece[g]) return;
        const State<A> own = chains.state(p + g, head);
        clear_state(lanes, chains.n, own, INFINITY);
        back(lanes, own, p, head, chains.scratch(i), [](int) {});
    }
    HD void starts(Lanes lanes, std::int64_t i) const {
        const StatePlan& plan = chains.plan;
        const int g = int(i / chains.heads), head = int(i % chains.heads);
        State<A> adjoint = chains.state(plan.first_piece[g + 1] + g, head);
        clear_state(lanes, chains.n, adjoint, INFINITY);
        for (int p = plan.first_piece[g + 1] - 1; p > plan.first_piece[g]; p--) {
            const State<A> own = chains.state(p + g, head);
            join_adjoint(lanes, chains.n, own, adjoint, chains.scratch(i));
            adjoint = own;
        }
    }
    HD void keys(Lanes lanes, std::int64_t i) const {
        const int p = int(i / chains.heads), head = int(i % chains.heads);
        A* work = chains.scratch(i);
        const State<A> adjoint = chains.state(p + chains.plan.group[p] + 1, head);
        back(lanes, adjoint, p, head, work, [&](int key) {
            const auto at = chains.place(key, head);
            A* ds = dpack[at.source];
            S* d = dkv[at.source];
            const A grown = key_grad(lanes, chains.n, adjoint, chains.key_at(at), ds ? ds + at.pack : nullptr,
                                     d ? d + at.key : nullptr, d ? d + at.value : nullptr, work);
            if (chains.n.gated && first(lanes)) growths[std::int64_t(key) * chains.heads + head] = grown;
        });
    }
    // Computes the gradients of the gates of group g. A key has a gate, a number between 0 and 1. For every query that
    // sees the key, the weights of all earlier keys are multiplied by the gate, and the weights of the key itself by
    // 1 - gate.
    HD void gates(Lanes lanes, std::int64_t i) const {
        const StatePlan& plan = chains.plan;
        const int g = int(i / chains.heads), head = int(i % chains.heads);
        const int from = plan.first_piece[g] + g, to = plan.first_piece[g + 1] + g;
        if (!first(lanes)) return;
        A faded(0);
        int q = plan.query[to] - 1;
        for (int key = plan.key[to] - 1; key >= plan.key[from]; key--) {
            for (; q >= plan.query[from] && plan.query_end[q] > key; q--) faded += *trace(q, head).log_total;
            const auto at = chains.place(key, head);
            const A grown = growths[std::int64_t(key) * chains.heads + head],
                    gate = gate_of(chains.gate[at.source] + at.gate);
            faded -= grown;
            if (dgate[at.source]) dgate[at.source][at.gate] += (A(1) - gate) * faded - gate * grown;
        }
    }
};

enum class Stage { queries, totals, starts, keys, gates };
// Runs one stage of the backward for work item from + i. In the stages `starts` and `gates`, a work item is one head of
// one group (query segments that share a list of keys). In the other stages, a work item is one head of one piece (a
// part of the keys and queries of a group).
template <Stage stage, class B>
struct At {
    B f;
    std::int64_t from;
    HD void operator()(Lanes lanes, std::int64_t i) const {
        if constexpr (stage == Stage::queries) f.queries(lanes, from + i);
        if constexpr (stage == Stage::totals) f.totals(lanes, from + i);
        if constexpr (stage == Stage::starts) f.starts(lanes, from + i);
        if constexpr (stage == Stage::keys) f.keys(lanes, from + i);
        if constexpr (stage == Stage::gates) f.gates(lanes, from + i);
    }
};

}  // namespace

void state_attention_backward(View dy, View x, Views pack, Views kv, Views gate, const SegmentGraph& graph,
                              StateRule rule, Grad dx, Grads dpack, Grads dkv, Grads dgate) {
    const char* op = "state_attention backward";
    check_call(op, x, pack, kv, gate, rule, dy);
    expect_grad(op, "dx", dx, x);
    for (int s = 0; s < dkv.count; s++) {
        expect_grad(op, "dpack", dpack[s], pack[s]);
        expect_grad(op, "dkv", dkv[s], kv[s]);
        if (gate.count) expect_grad(op, "dgate", dgate[s], gate[s]);
    }
    const std::vector<int> numbers = state_plan_numbers(op, graph, kv, rule.piece, false);
    for_types(dy.dtype, rule, [&]<class S, class X, class A>(S, X, A) {
        using B = Backward<S, X, A>;
        clear<X>(dx);
        for (int s = 0; s < dkv.count; s++) clear<A>(dpack[s]), clear<S>(dkv[s]), clear<A>(dgate[s]);
        const auto chains = chains_of<S, X, A>(x, pack, kv, gate, rule, dy, numbers);
        const StatePlan& plan = chains.plan;
        const std::int64_t H = rule.heads, traces = plan.queries * H * rule.slots * 4;
        A* kept = workspace<TraceTag, A>(traces + (gate.count ? plan.keys * H : 0));
        const B f{chains, dy.as<S>(),    kept,        kept + traces, dx.as<X>(),
                  dx.add, dpack.as<A>(), dkv.as<S>(), dgate.as<A>()};
        start_pieces<S, X, A>(chains, nullptr);
        for_each_long_row(plan.pieces * H, At<Stage::queries, B>{f, 0});
        if (plan.pieces > plan.groups) for_each_long_row(plan.pieces * H, At<Stage::totals, B>{f, 0});
        for_each_long_row(plan.groups * H, At<Stage::starts, B>{f, 0});
        // Two groups of queries of one document may share keys, and would then add to the same gradients. The groups
        // are therefore processed in waves, one wave after another. A wave has at most one group of each document.
        const StatePlan on_host = state_plan(numbers, numbers.data());
        for (int wave = 0; wave < plan.waves; wave++) {
            const std::int64_t g = on_host.first_group[wave], end = on_host.first_group[wave + 1],
                               first = on_host.first_piece[g];
            for_each_long_row((on_host.first_piece[end] - first) * H, At<Stage::keys, B>{f, first * H});
            if (gate.count) for_each_long_row((end - g) * H, At<Stage::gates, B>{f, g * H});
        }
    });
}

}  // namespace masquerade::DEVICE
