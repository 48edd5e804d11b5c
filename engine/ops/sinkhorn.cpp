// SPDX-License-Identifier: MIT
// The op sinkhorn: replaces each block of keys and values by a weighted mean of the blocks of its segment. The weights
// are a matrix S, which Sinkhorn iterations make nearly doubly stochastic. The iterations compute the logarithms of S.
// Each head of each segment has its own S. Derivations: docs/ops/sinkhorn.md.
#include "engine/math/scalar.h"
#include "engine/ops/launch.h"
#include "engine/ops/whole.h"

namespace masquerade::DEVICE {
namespace {

struct PlanTag {};
struct RoomTag {};

// Returns log sum_i exp f(i) for i < n, computed by one lane.
template <class F>
HD auto log_sum(int n, F f) {
    using A = decltype(f(0));
    const A most = A(top(OneLane{}, n, f));
    return most + log_of(sum(OneLane{}, n, [&](int i) { return exp_of(f(i) - most); }));
}

// R_uv is the score of blocks u and v of one segment. There are K iterations. Iteration k normalises the columns and
// then the rows, starting with r^0 = 0:
//     c^k_v = log sum_u exp(R_uv - r^(k-1)_u),   r^k_u = log sum_v exp(R_uv - c^k_v),   log S_uv = R_uv - c^K_v - r^K_u
// Row t of sorted block u is the mean of row t of all blocks v, with the weights w_uv = S_uv. If the last block has no
// row t, w_uv is S_uv divided by the sum of S_uv over the other blocks v.
template <class S, class A>
struct Sorting {
    WholePlan plan;
    const S *q, *kv;
    int heads, D, K;
    A scale;                                 // 1 / (sqrt(D) temperature)
    A *mean_q, *mean_k, *dmean_q, *dmean_k;  // (blocks,H,D): means of q and of the keys, their gradients
    A *scores, *slopes, *work;               // (blocks,H,most): R, its gradient, scratch memory
    A* weights;    // (2,blocks,H,most): w for rows t that the last block has, then w for the other rows t
    A* potential;  // (2K + 3,blocks,H): r^0, c^1, r^1, ..., c^K, r^K, then the gradients of r and c
    HD std::int64_t at(int u, int head) const { return std::int64_t(u) * heads + head; }
    HD A* row(A* of, int u, int head) const { return of + at(u, head) * plan.most; }
    HD A& value(int step, int u, int head) const {
        return potential[std::int64_t(step) * plan.blocks * heads + at(u, head)];
    }
    HD bool lacks(int u, int t) const {
        const int s = plan.segment_of[u];
        return s >= 0 && t >= plan.rows_of(plan.first_block[s + 1] - 1);
    }
    HD int blocks_with(int u, int t) const {
        return plan.segment_of[u] < 0 ? 0 : plan.blocks_of(plan.segment_of[u]) - lacks(u, t);
    }
    HD A* weights_of(int u, int head, int t) const { return row(weights, lacks(u, t) ? plan.blocks + u : u, head); }
    // Returns row t of block v in kv. Block v is counted from the first block of the segment that contains block u.
    HD const S* key_value(int u, int v, int t) const {
        return kv + (plan.begin[plan.segment_of[u]] + std::int64_t(v) * plan.block + t) * 2 * heads * D;
    }
};

template <class S, class A>
struct Means {
    Sorting<S, A> of;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const int u = int(n / of.heads), head = int(n % of.heads), C = of.heads * of.D;
        if (of.plan.segment_of[u] < 0) return;
        const int begin = of.plan.first_row(u), rows = of.plan.rows_of(u);
        each(lanes, of.D, [&](int d) {
            A a(0), b(0);
            for (std::int64_t row = begin; row < begin + rows; row++)
                a += A(of.q[row * C + head * of.D + d]), b += A(of.kv[row * 2 * C + head * of.D + d]);
            of.mean_q[n * of.D + d] = a / A(rows), of.mean_k[n * of.D + d] = b / A(rows);
        });
    }
};

template <class S, class A>
struct Normalise {
    Sorting<S, A> of;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t i) const {
        const int head = int(i % of.heads), segment = int(i / of.heads), U = of.plan.blocks_of(segment),
                  first = of.plan.first_block[segment];
        const auto score = [&](int u, int v) -> A& { return of.row(of.scores, first + u, head)[v]; };
        each(lanes, U * U, [&](int uv) {
            const A *q = of.mean_q + of.at(first + uv / U, head) * of.D,
                    *k = of.mean_k + of.at(first + uv % U, head) * of.D;
            score(uv / U, uv % U) = of.scale * sum(OneLane{}, of.D, [&](int d) { return q[d] * k[d]; });
        });
        each(lanes, U, [&](int u) { of.value(0, first + u, head) = A(0); });
        for (int step = 1; step <= 2 * of.K; step++) {
            meet(lanes);
            const auto before = [&](int u) { return of.value(step - 1, first + u, head); };
            each(lanes, U, [&](int w) {
                of.value(step, first + w, head) =
                    log_sum(U, [&](int u) { return (step % 2 ? score(u, w) : score(w, u)) - before(u); });
            });
        }
        meet(lanes);
        each(lanes, U, [&](int u) {
            const auto share = [&](int v) { return score(u, v) - of.value(2 * of.K - 1, first + v, head); };
            const A all = of.value(2 * of.K, first + u, head), others = log_sum(U - 1, share);
            for (int v = 0; v < U; v++) {
                of.row(of.weights, first + u, head)[v] = exp_of(share(v) - all);
                if (v < U - 1) of.row(of.weights, of.plan.blocks + first + u, head)[v] = exp_of(share(v) - others);
            }
        });
    }
};

template <class S, class A>
struct Mix {
    Sorting<S, A> of;
    S* y;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const int u = int(n / of.plan.block), t = int(n % of.plan.block), U = of.blocks_with(u, t), C = of.heads * of.D;
        store(lanes, 2 * C, y + n * 2 * C, false, [&](int c) {
            A total(0);
            for (int v = 0; v < U; v++)
                total = mul_add(of.weights_of(u, c % C / of.D, t)[v], A(of.key_value(u, v, t)[c]), total);
            return total;
        });
    }
};

// Computes `slopes`, the gradient of log S_uv: sum_t w_uv (g_v - sum_v' w_uv' g_v'), where g_v is the gradient of w_uv
// for row t, that is, (dy of row t of sorted block u) . (row t of block v).
template <class S, class A>
struct WeightsGrad {
    Sorting<S, A> of;
    const S* dy;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const int u = int(n / of.heads), head = int(n % of.heads), D = of.D, C = of.heads * D;
        A *g = of.row(of.work, u, head), *to = of.row(of.slopes, u, head);
        each(lanes, of.plan.most, [&](int v) { to[v] = A(0); });
        for (int t = 0; t < of.plan.block; t++) {
            const int U = of.blocks_with(u, t);
            const A* w = of.weights_of(u, head, t);
            const S* a = dy + (std::int64_t(u) * of.plan.block + t) * 2 * C + head * D;
            for (int v = 0; v < U; v++) {
                const S* b = of.key_value(u, v, t) + head * D;
                const A both = sum(lanes, D, [&](int d) { return A(a[d]) * A(b[d]) + A(a[C + d]) * A(b[C + d]); });
                if (first(lanes)) g[v] = both;
            }
            meet(lanes);
            const A mean = sum(lanes, U, [&](int v) { return w[v] * g[v]; });
            each(lanes, U, [&](int v) { to[v] += w[v] * (g[v] - mean); });
            meet(lanes);
        }
    }
};

// The backward of all normalisation steps. It begins with the gradient of log S in `slopes`, and changes it into the
// gradient of R. Let P_uv = exp(R_uv - c^k_v - r^k_u). If r^k_u has the gradient g_u, then g_u P_uv is added to the
// gradient of R_uv and subtracted from the gradient of c^k_v. The step of c^k passes its gradient to R and r^(k-1) in
// the same way.
template <class S, class A>
struct NormaliseGrad {
    Sorting<S, A> of;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t i) const {
        const int head = int(i % of.heads), segment = int(i / of.heads), U = of.plan.blocks_of(segment),
                  first = of.plan.first_block[segment], K = of.K;
        const auto slope = [&](int u, int v) -> A& { return of.row(of.slopes, first + u, head)[v]; };
        const auto adjoint = [&](bool column, int w) -> A& { return of.value(2 * K + 1 + column, first + w, head); };
        each(lanes, U, [&](int w) {
            adjoint(true, w) = -sum(OneLane{}, U, [&](int u) { return slope(u, w); });
            adjoint(false, w) = -sum(OneLane{}, U, [&](int v) { return slope(w, v); });
        });
        for (int step = 2 * K; step > 0; step--) {
            const bool column = step % 2;
            meet(lanes);
            // Returns the gradient that value w of this step passes to value `other` of the previous step.
            const auto share = [&](int w, int other) {
                const int u = column ? other : w, v = column ? w : other;
                return adjoint(column, w) *
                       exp_of(of.row(of.scores, first + u, head)[v] - of.value(step, first + w, head) -
                              of.value(step - 1, first + other, head));
            };
            each(lanes, U * U,
                 [&](int uv) { slope(uv / U, uv % U) += column ? share(uv % U, uv / U) : share(uv / U, uv % U); });
            each(lanes, U, [&](int other) {
                const A lost = sum(OneLane{}, U, [&](int w) { return share(w, other); });
                adjoint(!column, other) = (step == 2 * K ? adjoint(!column, other) : A(0)) - lost;
            });
        }
        meet(lanes);
        each(lanes, U * of.D, [&](int ud) {
            const int u = ud / of.D, d = ud % of.D;
            const auto mean = [&](A* m, int v) { return m[of.at(first + v, head) * of.D + d]; };
            of.dmean_q[of.at(first + u, head) * of.D + d] =
                of.scale * sum(OneLane{}, U, [&](int v) { return slope(u, v) * mean(of.mean_k, v); });
            of.dmean_k[of.at(first + u, head) * of.D + d] =
                of.scale * sum(OneLane{}, U, [&](int v) { return slope(v, u) * mean(of.mean_q, v); });
        });
    }
};

// Computes the gradient of one row of q or kv, row t of block v: the gradient of the block's mean, divided by the
// number of its rows, plus, for kv, sum_u w_uv (dy of row t of sorted block u).
template <class S, class A>
struct RowsGrad {
    Sorting<S, A> of;
    const A* dmean;
    const S* dy;  // null: computes dq instead of dkv
    S* to;
    bool add;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t row) const {
        const int s = of.plan.segment[row], C = of.heads * of.D, width = dy ? 2 * C : C, block = of.plan.block;
        if (s < 0) return store(lanes, width, to + row * width, add, [](int) { return A(0); });
        const int first = of.plan.first_block[s], v = (int(row) - of.plan.begin[s]) / block,
                  t = (int(row) - of.plan.begin[s]) % block;
        store(lanes, width, to + row * width, add, [&](int c) {
            A total = c < C ? dmean[std::int64_t(first + v) * C + c] / A(of.plan.rows_of(first + v)) : A(0);
            for (int u = first; dy && u < of.plan.first_block[s + 1]; u++)
                total = mul_add(of.weights_of(u, c % C / of.D, t)[v], A(dy[(std::int64_t(u) * block + t) * width + c]),
                                total);
            return total;
        });
    }
};

// Checks the shapes, and returns the tables of a WholePlan as numbers. All rows of a segment are sorted, even if the
// graph has query rows for only some of them.
std::vector<int> check_call(const char* op, const View& q, const View& kv, const SegmentGraph& graph,
                            const SinkhornRule& rule, const View& y) {
    if (rule.heads < 1 || q.columns() % rule.heads || rule.block < 1 || rule.iterations < 1 || !(rule.temperature > 0))
        throw Error(text(op, ": ", seen("q", q), ", ", rule.heads, " heads, blocks of ", rule.block, ", ",
                         rule.iterations, " iterations, temperature ", rule.temperature,
                         "; expected whole heads and positive numbers"));
    std::int64_t queries = 0;
    for (const QuerySegment& s : graph.queries) queries = std::max<std::int64_t>(queries, s.end);
    expect_shape(op, "kv", kv, {q.rows(), 2 * q.columns()}, q.dtype);
    expect_shape(op, "y", y, {whole_blocks(graph, q.rows(), rule.block) * rule.block, kv.columns()}, q.dtype);
    return whole_plan_numbers(op, graph, q.rows(), queries, rule.block);
}

// Computes the weights w of every segment. The result also contains uninitialised memory for the backward.
template <class S, class A>
Sorting<S, A> sorted(const View& q, const View& kv, const SinkhornRule& rule, const std::vector<int>& numbers) {
    Sorting<S, A> m{whole_plan(numbers, table_of<PlanTag>(numbers)),
                    q.as<S>(),
                    kv.as<S>(),
                    rule.heads,
                    int(q.columns()) / rule.heads,
                    rule.iterations,
                    A(0),
                    {},
                    {},
                    {},
                    {},
                    {},
                    {},
                    {},
                    {},
                    {}};
    m.scale = A(1 / (std::sqrt(double(m.D)) * rule.temperature));
    const std::int64_t rows = std::int64_t(m.plan.blocks) * m.heads, steps = 2 * m.K + 3;
    A* room = workspace<RoomTag, A>(std::size_t(rows * (4 * m.D + 5 * m.plan.most + steps)));
    for (A** mean : {&m.mean_q, &m.mean_k, &m.dmean_q, &m.dmean_k}) *mean = room, room += rows * m.D;
    for (A** matrix : {&m.scores, &m.slopes, &m.work, &m.weights}) *matrix = room, room += rows * m.plan.most;
    m.potential = room + rows * m.plan.most;
    for_each_row(rows, Means<S, A>{m});
    for_each_long_row(std::int64_t(m.plan.segments) * m.heads, Normalise<S, A>{m});
    return m;
}

}  // namespace

void sinkhorn_forward(View q, View kv, const SegmentGraph& graph, SinkhornRule rule, View y) {
    const std::vector<int> numbers = check_call("sinkhorn", q, kv, graph, rule, y);
    for_type(q.dtype, [&]<class S, class A>(Types<S, A>) {
        for_each_row(y.rows(), Mix<S, A>{sorted<S, A>(q, kv, rule, numbers), y.as<S>()});
    });
}

void sinkhorn_backward(View dy, View q, View kv, const SegmentGraph& graph, SinkhornRule rule, Grad dq, Grad dkv) {
    const std::vector<int> numbers = check_call("sinkhorn backward", q, kv, graph, rule, dy);
    expect_grad("sinkhorn backward", "dq", dq, q);
    expect_grad("sinkhorn backward", "dkv", dkv, kv);
    for_type(q.dtype, [&]<class S, class A>(Types<S, A>) {
        const auto m = sorted<S, A>(q, kv, rule, numbers);
        for_each_row(std::int64_t(m.plan.blocks) * m.heads, WeightsGrad<S, A>{m, dy.as<S>()});
        for_each_long_row(std::int64_t(m.plan.segments) * m.heads, NormaliseGrad<S, A>{m});
        if (dq) for_each_row(q.rows(), RowsGrad<S, A>{m, m.dmean_q, nullptr, dq.view.as<S>(), dq.add});
        if (dkv) for_each_row(q.rows(), RowsGrad<S, A>{m, m.dmean_k, dy.as<S>(), dkv.view.as<S>(), dkv.add});
    });
}

}  // namespace masquerade::DEVICE
