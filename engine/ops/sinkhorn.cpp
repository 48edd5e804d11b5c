// SPDX-License-Identifier: MIT
// The op sinkhorn: replaces each block of keys and values by a weighted mean of all blocks of the same list. A list
// contains the keys that a group of queries sees (list_plan.h). If the queries see different parts of the list, each
// block is replaced by a mean of only the blocks before it. The weights are a matrix S, which Sinkhorn iterations make
// nearly doubly stochastic. The iterations compute with log S. Each head of each list has its own S. Derivations:
// docs/ops/sinkhorn.md.
#include "engine/math/scalar.h"
#include "engine/ops/block_plan.h"
#include "engine/ops/launch.h"

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

// Returns log(exp(a) + exp(b)).
template <class A>
HD A log_sum(A a, A b) {
    const A most = real_of(a) > real_of(b) ? A(real_of(a)) : A(real_of(b));
    return most + log_of(exp_of(a - most) + exp_of(b - most));
}

// R_uv, the score of blocks u and v of one list, is the logarithm of S before the first iteration. Each of the K
// iterations normalises first the columns of S and then the rows. After iteration k, log S_uv is R_uv - c^k_v - r^k_u,
// where r^0 = 0 and
//     c^k_v = log sum_u exp(R_uv - r^(k-1)_u),   r^k_u = log sum_v exp(R_uv - c^k_v),   log S_uv = R_uv - c^K_v - r^K_u
// Row t of sorted block u is the mean of row t of all blocks v, with the weights w_uv = S_uv. The last block of a list
// may be shorter than the others. If it has no row t, the mean runs over the blocks v before the last one, and w_uv is
// S_uv divided by the sum of S_uv over these blocks.
//
// If rows of a list see different keys, only blocks v < u are mixed into sorted block u. For row u of S, a column is
// then normalised over the rows up to u only, because the rows after u depend on later keys:
//     c^k_uv = log sum_(v<i<=u) exp(R_iv - r^(k-1)_i),  r^k_u = log sum_(v<u) exp(R_uv - c^k_uv)
// R_uv is then computed from the mean of all queries of the list up to the first one of block u, instead of the mean of
// the queries of block u, because the first row of block u must not depend on later queries.
template <class A>
struct Sorting {
    BlockPlan plan;
    int heads, D, K;
    A scale;  // factor of the scores: 1 / (sqrt(D) temperature)
    // (blocks,H,D) each, for H heads: the means of the rows of q and of the keys over each block, and the gradients of
    // these means. If rows of the list see different keys, mean_q is the mean of all rows of q up to the first one of
    // the block.
    A *mean_q = nullptr, *mean_k = nullptr, *dmean_q = nullptr, *dmean_k = nullptr;
    // (blocks,H,most) each: a number for each block u, head, and block v of the same list, which has at most `most`
    // blocks. scores: R_uv. slopes: first the gradient of log S_uv, later the gradient of R_uv. work: scratch memory.
    A *scores = nullptr, *slopes = nullptr, *work = nullptr;
    // (2,blocks,H,most): first the weights w_uv of block v in sorted block u, for the rows t that the last block of the
    // list has, then w_uv for the other rows t. If only blocks before u are mixed, the second half is scratch memory.
    A* weights = nullptr;
    // (2K + 3,blocks,H), for K iterations, all blocks and H heads: r^0, c^1, r^1, ..., c^K, r^K, which are subtracted
    // from the rows and columns of the scores R, then the gradients of r and c.
    A* potential = nullptr;
    HD std::int64_t at(int u, int head) const { return std::int64_t(u) * heads + head; }
    HD A* row(A* of, int u, int head) const { return of + at(u, head) * plan.most; }
    HD A& value(int step, int u, int head) const {
        return potential[std::int64_t(step) * plan.blocks * heads + at(u, head)];
    }
    HD A* weights_of(int u, int head, int t) const {
        return row(weights, plan.lacks(u, t) ? plan.blocks + u : u, head);
    }
    // Returns the index in kv of the first number of row t of block v. v is counted from the first block of the list
    // that contains block u.
    HD std::int64_t key_value(int u, int v, int t) const { return std::int64_t(plan.row_of(u, v, t)) * 2 * heads * D; }
};

// One head of one list, in a Sorting. Its U blocks are counted from the first block of the list.
template <class A>
struct ListOfHead {
    const Sorting<A>& of;
    int head, group, first, U;
    HD ListOfHead(const Sorting<A>& all, std::int64_t i)
        : of(all),
          head(int(i % all.heads)),
          group(int(i / all.heads)),
          first(all.plan.first_block[group]),
          U(all.plan.blocks_of(group)) {}
    HD A& score(int u, int v) const { return of.row(of.scores, first + u, head)[v]; }
    HD A& slope(int u, int v) const { return of.row(of.slopes, first + u, head)[v]; }
    HD A& weight(int u, int v) const { return of.row(of.weights, first + u, head)[v]; }
    HD A& other_weight(int u, int v) const { return of.row(of.weights, of.plan.blocks + first + u, head)[v]; }
    HD A& column(int u, int v) const { return of.row(of.work, first + u, head)[v]; }
    HD A& value(int step, int w) const { return of.value(step, first + w, head); }
    HD const A* mean(const A* means, int w) const { return means + of.at(first + w, head) * of.D; }
    // For a list whose rows see different keys: computes c^k_uv for all v < u, from the scores R and r^(k-1), and
    // stores it in column(u, v). Iteration k subtracts c^k_uv from R_uv, to normalise column v over the rows up to u.
    HD void causal_columns(Lanes lanes, int k) const {
        each(lanes, U, [&](int v) {
            for (int u = v + 1; u < U; u++) {
                const A one = score(u, v) - value(2 * k - 2, u);
                column(u, v) = u == v + 1 ? one : log_sum(column(u - 1, v), one);
            }
        });
    }
};

template <class S, class A>
struct Means {
    Sorting<A> of;
    const S *q, *kv;
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const BlockPlan& plan = of.plan;
        const int u = int(n / of.heads), head = int(n % of.heads), C = of.heads * of.D, g = plan.group_of[u];
        if (g < 0) return;
        const int begin = plan.begin(u), keys = plan.keys_of(u);
        const int from = plan.whole[g] ? begin : plan.first_key[g], to = plan.whole[g] ? begin + keys : begin + 1;
        each(lanes, of.D, [&](int d) {
            A a(0), b(0);
            for (int key = from; key < to; key++) a += A(q[std::int64_t(plan.row[key]) * C + head * of.D + d]);
            for (int key = begin; key < begin + keys; key++)
                b += A(kv[std::int64_t(plan.row[key]) * 2 * C + head * of.D + d]);
            of.mean_q[n * of.D + d] = a / A(to - from), of.mean_k[n * of.D + d] = b / A(keys);
        });
    }
};

template <class A>
struct Normalise {
    Sorting<A> of;
    HD void operator()(Lanes lanes, std::int64_t i) const {
        const ListOfHead<A> l(of, i);
        const int U = l.U, K = of.K;
        each(lanes, U * U, [&](int uv) {
            const A *q = l.mean(of.mean_q, uv / U), *k = l.mean(of.mean_k, uv % U);
            l.score(uv / U, uv % U) = of.scale * sum(OneLane{}, of.D, [&](int d) { return q[d] * k[d]; });
        });
        each(lanes, U, [&](int u) { l.value(0, u) = A(0); });
        if (!of.plan.whole[l.group]) return causal(lanes, l);
        for (int step = 1; step <= 2 * K; step++) {
            meet(lanes);
            each(lanes, U, [&](int w) {
                l.value(step, w) = log_sum(U, [&](int u) {
                    return (step % 2 ? l.score(u, w) : l.score(w, u)) - l.value(step - 1, u);
                });
            });
        }
        meet(lanes);
        each(lanes, U, [&](int u) {
            const auto share = [&](int v) { return l.score(u, v) - l.value(2 * K - 1, v); };
            const A all = l.value(2 * K, u), others = log_sum(U - 1, share);
            for (int v = 0; v < U; v++) {
                l.weight(u, v) = exp_of(share(v) - all);
                if (v < U - 1) l.other_weight(u, v) = exp_of(share(v) - others);
            }
        });
    }
    HD void causal(Lanes lanes, const ListOfHead<A>& l) const {
        for (int k = 1; k <= of.K; k++) {
            meet(lanes);
            l.causal_columns(lanes, k);
            meet(lanes);
            each(lanes, l.U, [&](int u) {
                if (u > 0) l.value(2 * k, u) = log_sum(u, [&](int v) { return l.score(u, v) - l.column(u, v); });
            });
        }
        meet(lanes);
        each(lanes, l.U, [&](int u) {
            for (int v = 0; v < u; v++) l.weight(u, v) = exp_of(l.score(u, v) - l.column(u, v) - l.value(2 * of.K, u));
        });
    }
};

template <class S, class A>
struct Mix {
    Sorting<A> of;
    const S* kv;
    S* y;
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const int u = int(n / of.plan.block), t = int(n % of.plan.block), U = of.plan.mixed(u, t), C = of.heads * of.D;
        store(lanes, 2 * C, y + n * 2 * C, false, [&](int c) {
            A total(0);
            for (int v = 0; v < U; v++)
                total = mul_add(of.weights_of(u, c % C / of.D, t)[v], A(kv[of.key_value(u, v, t) + c]), total);
            return total;
        });
    }
};

// Computes the gradient of log S_uv, and stores it in `slopes`:
//     sum_t w_uv (g_v - sum_v' w_uv' g_v')
// w_uv is the weight of block v in sorted block u (struct Sorting). g_v is the gradient of w_uv in row t, the product
// (dy of row t of sorted block u) . (row t of block v).
template <class S, class A>
struct WeightsGrad {
    Sorting<A> of;
    const S *kv, *dy;
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const int u = int(n / of.heads), head = int(n % of.heads), D = of.D, C = of.heads * D;
        A *g = of.row(of.work, u, head), *to = of.row(of.slopes, u, head);
        each(lanes, of.plan.most, [&](int v) { to[v] = A(0); });
        for (int t = 0; t < of.plan.block; t++) {
            const int U = of.plan.mixed(u, t);
            const A* w = of.weights_of(u, head, t);
            const S* a = dy + (std::int64_t(u) * of.plan.block + t) * 2 * C + head * D;
            for (int v = 0; v < U; v++) {
                const S* b = kv + of.key_value(u, v, t) + head * D;
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

// The backward of all normalisation steps: changes the gradient of log S in `slopes` into the gradient of the scores R.
// Iteration k subtracts c^k_v and r^k_u from R_uv (struct Sorting). Let P_uv = exp(R_uv - c^k_v - r^k_u). If r^k_u has
// the gradient g_u, then g_u P_uv is added to the gradient of R_uv and subtracted from the gradient of c^k_v. In the
// same way, the gradient of c^k goes to R and r^(k-1).
template <class A>
struct NormaliseGrad {
    Sorting<A> of;
    HD void operator()(Lanes lanes, std::int64_t i) const {
        const ListOfHead<A> l(of, i);
        if (of.plan.whole[l.group])
            whole(lanes, l);
        else
            causal(lanes, l);
        means(lanes, l);
    }
    HD void whole(Lanes lanes, const ListOfHead<A>& l) const {
        const int U = l.U, K = of.K;
        const auto adjoint = [&](bool column, int w) -> A& { return l.value(2 * K + 1 + column, w); };
        each(lanes, U, [&](int w) {
            adjoint(true, w) = -sum(OneLane{}, U, [&](int u) { return l.slope(u, w); });
            adjoint(false, w) = -sum(OneLane{}, U, [&](int v) { return l.slope(w, v); });
        });
        for (int step = 2 * K; step > 0; step--) {
            const bool column = step % 2;
            meet(lanes);
            // A step computes all c^k_v or all r^k_u. Number w of this step depends on the score R_uv and on number
            // `other` of the previous step. `share` returns the gradient that number w passes to R_uv. Number `other`
            // gets the same gradient with the opposite sign.
            const auto share = [&](int w, int other) {
                const int u = column ? other : w, v = column ? w : other;
                return adjoint(column, w) * exp_of(l.score(u, v) - l.value(step, w) - l.value(step - 1, other));
            };
            each(lanes, U * U,
                 [&](int uv) { l.slope(uv / U, uv % U) += column ? share(uv % U, uv / U) : share(uv / U, uv % U); });
            each(lanes, U, [&](int other) {
                const A lost = sum(OneLane{}, U, [&](int w) { return share(w, other); });
                adjoint(!column, other) = (step == 2 * K ? adjoint(!column, other) : A(0)) - lost;
            });
        }
    }
    // Changes the gradient of log S in `slopes` into the gradient of the scores R, for a list in which block u of y
    // mixes only the blocks before u. Iteration k subtracts c = c^k and r^k from R (struct Sorting). The gradient g_uv
    // of c_uv goes to every row i of column v with v < i <= u:
    //     row i gets T_i exp(R_iv - r^(k-1)_i - c_iv), with T_i = sum_(u>=i) g_uv exp(c_iv - c_uv)
    // Both exponentials are at most 1, so they do not overflow: c_iv is the logarithm of a sum that contains
    // exp(R_iv - r^(k-1)_i), and in a column v, c_uv never decreases as u grows.
    HD void causal(Lanes lanes, const ListOfHead<A>& l) const {
        const int U = l.U;
        const auto adjoint = [&](int u, int v) -> A& { return l.other_weight(u, v); };
        each(lanes, U, [&](int u) {
            for (int v = 0; v < u; v++) adjoint(u, v) = -l.slope(u, v);
        });
        for (int k = of.K; k > 0; k--) {
            meet(lanes);
            l.causal_columns(lanes, k);
            meet(lanes);
            // Iteration k subtracts r^k from the rows of the scores R, and c^k from the columns. The loop over k runs
            // from the last iteration to the first. Iteration k + 1 has left the gradient that c^(k+1) passes to R_uv
            // in adjoint(u, v). The gradient g of r^k_u is minus the sum of adjoint(u, v) over v, because c^(k+1)
            // depends on R_uv - r^k_u. The lines below pass g on to R and c^k. If k is K, there is nothing to do: the
            // gradient of r^K is already part of the slopes (WeightsGrad).
            if (k < of.K)
                each(lanes, U, [&](int u) {
                    const A g = -sum(OneLane{}, u, [&](int v) { return adjoint(u, v); });
                    for (int v = 0; v < u; v++) {
                        const A share = g * exp_of(l.score(u, v) - l.column(u, v) - l.value(2 * k, u));
                        l.slope(u, v) += share, adjoint(u, v) = -share;
                    }
                });
            meet(lanes);
            each(lanes, U, [&](int v) {
                A T(0);
                for (int u = U - 1; u > v; u--) {
                    T = adjoint(u, v) + (u + 1 < U ? exp_of(l.column(u, v) - l.column(u + 1, v)) * T : A(0));
                    const A share = T * exp_of(l.score(u, v) - l.value(2 * k - 2, u) - l.column(u, v));
                    l.slope(u, v) += share, adjoint(u, v) = share;
                }
            });
        }
    }
    // Computes the gradients of the block means mean_q and mean_k from the gradient of the scores, slope(u, v), which
    // is 0 if block v is not mixed into sorted block u.
    HD void means(Lanes lanes, const ListOfHead<A>& l) const {
        meet(lanes);
        each(lanes, l.U * of.D, [&](int ud) {
            const int u = ud / of.D, d = ud % of.D;
            const std::int64_t to = of.at(l.first + u, l.head) * of.D + d;
            of.dmean_q[to] =
                of.scale * sum(OneLane{}, l.U, [&](int v) { return l.slope(u, v) * l.mean(of.mean_k, v)[d]; });
            of.dmean_k[to] =
                of.scale * sum(OneLane{}, l.U, [&](int v) { return l.slope(v, u) * l.mean(of.mean_q, v)[d]; });
        });
    }
};

// Computes the gradient of one row of q or of kv. The row may be in several lists; in each of them, it is key t of a
// block v. From each list, the row gets the gradient of every mean that contains the row, divided by the number of rows
// in the mean. A row of kv also gets sum_u w_uv (dy of row t of sorted block u), where w_uv is the weight of block v in
// sorted block u.
template <class S, class A>
struct RowsGrad {
    Sorting<A> of;
    const A* dmean;
    const S* dy;  // the gradient of y, if the gradient of kv is computed; null for the gradient of q
    S* to;
    bool add;
    HD void operator()(Lanes lanes, std::int64_t row) const {
        const BlockPlan& plan = of.plan;
        const int C = of.heads * of.D, width = dy ? 2 * C : C, block = plan.block;
        store(lanes, width, to + row * width, add, [&](int c) {
            A total(0);
            for (int i = plan.first_of_row[row]; i < plan.first_of_row[row + 1]; i++) {
                const int key = plan.of_row[i], g = plan.group[key], first = plan.first_block[g],
                          end = plan.first_block[g + 1], place = key - plan.first_key[g], v = first + place / block,
                          t = place % block;
                const bool whole = plan.whole[g];
                if (first == end) continue;  // the list is one block, and nothing is mixed
                if (dy || whole) {
                    if (c < C) total += dmean[std::int64_t(v) * C + c] / A(plan.keys_of(v));
                } else {
                    for (int u = t == 0 ? v : v + 1; u < end; u++)
                        total += dmean[std::int64_t(u) * C + c] / A((u - first) * block + 1);
                }
                for (int u = whole ? first : v + 1; dy && u < end; u++)
                    total = mul_add(of.weights_of(u, c % C / of.D, t)[v - first],
                                    A(dy[(std::int64_t(u) * block + t) * width + c]), total);
            }
            return total;
        });
    }
};

// Checks the shapes, computes the weights w_uv of the blocks of every list, and calls f(S(), m), where m also has
// memory for the backward, which is not initialised. y has rows for all keys of every list, even for keys in rows that
// have no query.
template <class F>
void for_sorting(const char* op, const View& q, const View& kv, const SegmentGraph& graph, const SinkhornRule& rule,
                 const View& y, F f) {
    if (rule.heads < 1 || q.columns() % rule.heads || rule.block < 1 || rule.iterations < 1 || !(rule.temperature > 0))
        throw Error(op, ": ", seen("q", q), ", ", rule.heads, " heads, blocks of ", rule.block, ", ", rule.iterations,
                    " iterations, temperature ", rule.temperature, "; expected whole heads and positive numbers");
    std::int64_t queries = 0;
    for (const QuerySegment& s : graph.queries) queries = std::max<std::int64_t>(queries, s.end);
    expect_shape(op, "y", y, {most_blocks(graph, q.rows(), rule.block) * rule.block, kv.columns()}, q.dtype);
    const std::vector<int> numbers = block_plan_numbers(op, graph, q.rows(), queries, rule.block);
    for_type(q.dtype, [&]<class S, class A>(S, A) {
        const int D = int(q.columns()) / rule.heads;
        Sorting<A> m{block_plan(numbers, table_of<PlanTag>(numbers)), rule.heads, D, rule.iterations,
                     A(1 / (std::sqrt(double(D)) * rule.temperature))};
        const std::int64_t rows = std::int64_t(m.plan.blocks) * m.heads, steps = 2 * m.K + 3;
        A* room = workspace<RoomTag, A>(rows * (4 * m.D + 5 * m.plan.most + steps));
        for (A** mean : {&m.mean_q, &m.mean_k, &m.dmean_q, &m.dmean_k}) *mean = room, room += rows * m.D;
        for (A** matrix : {&m.scores, &m.slopes, &m.work, &m.weights}) *matrix = room, room += rows * m.plan.most;
        m.potential = room + rows * m.plan.most;
        for_each_row(rows, Means<S, A>{m, q.as<S>(), kv.as<S>()});
        for_each_long_row(std::int64_t(m.plan.groups) * m.heads, Normalise<A>{m});
        f(S(), m);
    });
}

}  // namespace

void sinkhorn_forward(View q, View kv, const SegmentGraph& graph, SinkhornRule rule, View y) {
    for_sorting("sinkhorn", q, kv, graph, rule, y, [&]<class S, class A>(S, const Sorting<A>& m) {
        for_each_row(y.rows(), Mix<S, A>{m, kv.as<S>(), y.as<S>()});
    });
}

void sinkhorn_backward(View dy, View q, View kv, const SegmentGraph& graph, SinkhornRule rule, Grad dq, Grad dkv) {
    for_sorting("sinkhorn backward", q, kv, graph, rule, dy, [&]<class S, class A>(S, const Sorting<A>& m) {
        for_each_row(std::int64_t(m.plan.blocks) * m.heads, WeightsGrad<S, A>{m, kv.as<S>(), dy.as<S>()});
        for_each_long_row(std::int64_t(m.plan.groups) * m.heads, NormaliseGrad<A>{m});
        if (dq) for_each_row(q.rows(), RowsGrad<S, A>{m, m.dmean_q, nullptr, dq.as<S>(), dq.add});
        if (dkv) for_each_row(q.rows(), RowsGrad<S, A>{m, m.dmean_k, dy.as<S>(), dkv.as<S>(), dkv.add});
    });
}

}  // namespace masquerade::DEVICE
