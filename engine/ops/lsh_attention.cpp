// SPDX-License-Identifier: MIT
// The op lsh_attention: softmax attention of each row to those other visible rows that are in the same hash bucket, and
// in the same chunk of sorted rows or in the chunk before. A row that finds no such row attends to itself. The backward
// hashes and sorts the rows again, so that the sorted order need not be kept in memory after the forward. The gradient
// of a key is summed over the queries that attend to the key, in a fixed order.
#include "engine/math/scalar.h"
#include "engine/ops/attention.h"
#include "engine/ops/launch.h"
#include "engine/ops/list_plan.h"

namespace masquerade::DEVICE {
namespace {

struct PlanTag {};
struct SortTag {};
struct RoomTag {};

// The list of keys of each group (list_plan.h), sorted by bucket for each round and head. Keys of the same bucket keep
// the order of the list. A chunk has `chunk` keys; the last chunk of a list or bucket may be shorter. If all rows of
// the group see the whole list (ListPlan::whole), the sorted list is cut into chunks from the start of the list.
// Otherwise each bucket is cut into chunks from the start of the bucket.
struct Sorted {
    ListPlan plan;
    int heads, rounds, buckets, chunk;
    int* bucket = nullptr;  // (rounds,H,rows), for H heads: the bucket of each row
    // Both tables are (rounds,H,keys). `order` contains the indices of the keys, group by group; within a group, the
    // keys are sorted by bucket. start[key] is the place in `order` at which the chunk of this key begins, counted from
    // the beginning of the group.
    int *order = nullptr, *start = nullptr;
    HD std::int64_t at(int round, int head) const { return std::int64_t(round) * heads + head; }
    HD int bucket_of(std::int64_t b, int key) const { return bucket[b * plan.rows + plan.row[key]]; }
    // True if the query in the row of key i finds key j in a round before `round`: both keys are in the same bucket,
    // and j is in the chunk of i or in the chunk before. The caller has checked that the query sees j.
    HD bool before(int round, int head, int i, int j) const {
        for (int r = 0; r < round; r++) {
            const std::int64_t b = at(r, head);
            const int back = start[b * plan.keys + i] - start[b * plan.keys + j];
            if (bucket_of(b, i) == bucket_of(b, j) && (back == 0 || back == chunk)) return true;
        }
        return false;
    }
    // A query finds a key if, in some round, both are in the same bucket, and the key is in the chunk of the query or
    // in the chunk before. If from_key is false, calls f(other) for every key `other` that the query in the row of
    // `key` sees and finds. If from_key is true, calls f(other) for every key `other` whose query sees and finds `key`.
    // `key` itself is left out. f is called once for a pair, even if several rounds find the pair. Returns false if f
    // was not called.
    template <bool from_key, class F>
    HD bool each_found(int key, int head, F f) const {
        const int begin = plan.first_key[plan.group[key]], n = plan.first_key[plan.group[key] + 1] - begin;
        bool any = false;
        for (int r = 0; r < rounds; r++) {
            const std::int64_t b = at(r, head);
            const int own = start[b * plan.keys + key], first = from_key ? own : own < chunk ? 0 : own - chunk;
            const int reach = from_key ? own + 2 * chunk : own + chunk, last = reach < n ? reach : n;
            for (int p = first; p < last; p++) {
                const int other = order[b * plan.keys + begin + p];
                if (other == key || bucket_of(b, other) != bucket_of(b, key)) continue;
                if (from_key ? plan.sees[other] <= key : plan.sees[key] <= other) continue;
                if (from_key ? before(r, head, other, key) : before(r, head, key, other)) continue;
                any = true;
                f(other);
            }
        }
        return any;
    }
};

// Work item i = (row H + head) rounds + round, for H heads. Computes the bucket of one head of a row, in one round. Let
// x (D) be this head's part of the row of q, and R (D, buckets / 2) the matrix of this round and head in `rotations`.
// The bucket is the index of the largest number of the concatenation (x R, -x R) (Andoni et al. 2015).
template <class S, class A>
struct Hash {
    Sorted to;
    const S* q;
    const A* rotations;
    int C, D;
    HD void operator()(Lanes lanes, std::int64_t i) const {
        const int each_row = to.heads * to.rounds, row = int(i / each_row), head = int(i % each_row) / to.rounds,
                  round = int(i % to.rounds);
        // If the row is in no list of keys, it needs no bucket.
        if (to.plan.first_of_row[row] == to.plan.first_of_row[row + 1]) return;
        const int half = to.buckets / 2;
        const S* x = q + std::int64_t(row) * C + head * D;
        auto most = real_of(A(-INFINITY));
        int found = 0;
        for (int k = 0; k < half; k++) {
            const A* w = rotations + std::int64_t(round * half + k) * C + head * D;
            const auto t = real_of(sum(lanes, D, [&](int d) { return A(x[d]) * w[d]; }));
            if (t > most) most = t, found = k;
            if (-t > most) most = -t, found = half + k;
        }
        if (first(lanes)) to.bucket[to.at(round, head) * to.plan.rows + row] = found;
    }
};

// Work item i = (group rounds + round) H + head, for H heads. Sorts the keys of a group by bucket, for one round and
// head. Keys of the same bucket keep their order.
struct Sort {
    Sorted to;
    HD void operator()(Lanes lanes, std::int64_t i) const {
        const ListPlan& plan = to.plan;
        const int g = int(i / (to.rounds * to.heads)), begin = plan.first_key[g], end = plan.first_key[g + 1];
        const std::int64_t b = i % (to.rounds * to.heads);
        each(lanes, to.buckets, [&](int c) {
            int place = 0;
            for (int key = begin; key < end; key++) place += to.bucket_of(b, key) < c;
            // The place from which the chunks are counted, as an index in the sorted keys of this group: the start of
            // the list if all rows see the whole list, otherwise the start of bucket c.
            const int from = plan.whole[g] ? 0 : place;
            for (int key = begin; key < end; key++) {
                if (to.bucket_of(b, key) != c) continue;
                to.order[b * plan.keys + begin + place] = key;
                to.start[b * plan.keys + key] = from + (place - from) / to.chunk * to.chunk;
                place++;
            }
        });
    }
};

template <class S, class A>
struct Pairs {
    Sorted sorted;
    const S *q, *k, *v;
    int C, D;
    A scale;
    const int *document, *position;  // of each row of y; the random numbers of dropout depend on them
    Stream stream;
    std::uint32_t threshold;
    A kept;   // factor of the probabilities that dropout keeps: 1 / (1 - rate)
    A* room;  // scratch memory for sums: 3D numbers for each work item
    HD std::int64_t at(int row, int head) const { return std::int64_t(row) * C + head * D; }
    // Returns the index in q, k and v at which head `head` of the row of `key` begins.
    HD std::int64_t of(int key, int head) const { return at(sorted.plan.row[key], head); }
    HD A* room_of(std::int64_t item) const { return room + 3 * item * D; }
    HD A score(Lanes lanes, int i, int j, int head) const {
        const S *a = q + of(i, head), *b = k + of(j, head);
        return scale * sum(lanes, D, [&](int d) { return A(a[d]) * A(b[d]); });
    }
    // Returns the dropout factor of the probability of key j for query i: 0 if dropout drops it, else 1 / (1 - rate).
    HD A keep(int i, int j, int head) const {
        if (threshold == 0) return A(1);
        const int m = sorted.plan.query[i];
        // The channel selects the random number of a key. It consists of the head and of the index of the key in the
        // list of its group (list_plan.h).
        const std::uint32_t channel =
            (std::uint32_t(head) << 20) + std::uint32_t(j - sorted.plan.first_key[sorted.plan.group[j]]);
        const Four words = stream.at(std::uint32_t(document[m]), std::uint32_t(position[m]), channel / 4);
        return words.v[channel % 4] >= threshold ? kept : A(0);
    }
};

template <class S, class A>
struct Forward {
    Pairs<S, A> of;
    S* y;
    A* lse;
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const int m = int(n / of.sorted.heads), head = int(n % of.sorted.heads), i = of.sorted.plan.own[m];
        S* to = y + of.at(m, head);
        if (i < 0) {
            store(lanes, of.D, to, false, [](int) { return A(0); });
            if (first(lanes)) lse[n] = A(-INFINITY);
            return;
        }
        A* row = of.room_of(n);
        A top(-INFINITY), total(0);
        each(lanes, of.D, [&](int d) { row[d] = A(0); });
        const auto take = [&](int j) {
            const A s = of.score(lanes, i, j, head), higher = real_of(s) > real_of(top) ? A(real_of(s)) : top;
            const A old = exp_of(top - higher), p = exp_of(s - higher), weight = p * of.keep(i, j, head);
            const S* v = of.v + of.of(j, head);
            top = higher, total = old * total + p;
            each(lanes, of.D, [&](int d) { row[d] = mul_add(weight, A(v[d]), old * row[d]); });
        };
        if (!of.sorted.template each_found<false>(i, head, take)) take(i);
        store(lanes, of.D, to, false, [&](int d) { return row[d] / total; });
        if (first(lanes)) lse[n] = top + log_of(total);
    }
};

// Work item n = row H + head, for H heads. Computes the gradients of one head of a row, as a query (dq) and as a key
// (dk, dv). The gradient of q_i . k_j is ds_ij = p_ij dy_i . (keep_ij v_j - y_i) / sqrt(D), where p_ij is the attention
// probability and keep_ij its dropout factor.
template <class S, class A>
struct Backward {
    Pairs<S, A> of;
    const S *dy, *y;
    const A* lse;
    S *dq, *dk, *dv;
    bool add_q, add_k, add_v;
    HD void operator()(Lanes lanes, std::int64_t n) const {
        const ListPlan& plan = of.sorted.plan;
        const int row = int(n / of.sorted.heads), head = int(n % of.sorted.heads), D = of.D;
        A *to_q = of.room_of(n), *to_k = to_q + D, *to_v = to_k + D;
        each(lanes, 3 * D, [&](int d) { to_q[d] = A(0); });
        meet(lanes);
        const auto pair = [&](int i, int j, bool key) {
            const int m = plan.query[i];
            const S *g = dy + of.at(m, head), *out = y + of.at(m, head), *q = of.q + of.of(i, head),
                    *k = of.k + of.of(j, head), *v = of.v + of.of(j, head);
            const A keep = of.keep(i, j, head),
                    p = exp_of(of.score(lanes, i, j, head) - lse[std::int64_t(m) * of.sorted.heads + head]);
            const A ds = of.scale * p * sum(lanes, D, [&](int d) { return A(g[d]) * (keep * A(v[d]) - A(out[d])); }),
                    weight = p * keep;
            if (!key) return each(lanes, D, [&](int d) { to_q[d] = mul_add(ds, A(k[d]), to_q[d]); });
            each(lanes, D,
                 [&](int d) { to_k[d] = mul_add(ds, A(q[d]), to_k[d]), to_v[d] = mul_add(weight, A(g[d]), to_v[d]); });
        };
        for (int u = plan.first_of_row[row]; u < plan.first_of_row[row + 1]; u++) {
            const int own = plan.of_row[u];
            const bool alone = plan.query[own] >= 0 &&
                               !of.sorted.template each_found<false>(own, head, [&](int j) { pair(own, j, false); });
            of.sorted.template each_found<true>(own, head, [&](int i) { pair(i, own, true); });
            if (alone) pair(own, own, false), pair(own, own, true);
        }
        if (dq) store(lanes, D, dq + of.at(row, head), add_q, [&](int d) { return to_q[d]; });
        if (dk) store(lanes, D, dk + of.at(row, head), add_k, [&](int d) { return to_k[d]; });
        if (dv) store(lanes, D, dv + of.at(row, head), add_v, [&](int d) { return to_v[d]; });
    }
};

// Checks the arguments, hashes and sorts the rows, and calls f(pairs). `pairs` computes the score and the dropout
// factor of any query row and key row.
template <class F>
void for_pairs(const char* op, const View& q, const View& k, const View& v, const View& rotations,
               const SegmentGraph& graph, const LshRule& rule, const View& y, const View& lse, F f) {
    const AttentionRule& a = rule.attention;
    if (rule.rounds < 1 || rule.buckets < 2 || rule.buckets % 2 || rule.chunk < 1)
        throw Error(op, ": ", rule.rounds, " rounds, ", rule.buckets, " buckets, chunks of ", rule.chunk,
                    "; expected an even number of buckets");
    check_attention_rule(op, q, a, y.rows(), lse);
    expect_shape(op, "rotations", rotations, {rule.rounds * rule.buckets / 2, q.columns()}, arithmetic_of(q.dtype));
    const std::vector<int> numbers = list_plan_numbers(op, graph, q.rows(), y.rows());
    for_type(q.dtype, [&]<class S, class A>(S, A) {
        const int C = int(q.columns()), D = C / a.heads;
        Sorted to{list_plan(numbers, table_of<PlanTag>(numbers)), a.heads, rule.rounds, rule.buckets, rule.chunk};
        const std::int64_t sorts = std::int64_t(a.heads) * rule.rounds, count = q.rows() * sorts,
                           keys = to.plan.keys * sorts;
        to.bucket = workspace<SortTag, int>(count + 2 * keys);
        to.order = to.bucket + count, to.start = to.order + keys;
        for_each_row(count, Hash<S, A>{to, q.as<S>(), rotations.as<A>(), C, D});
        for_each_long_row(to.plan.groups * sorts, Sort{to});
        f(Pairs<S, A>{to, q.as<S>(), k.as<S>(), v.as<S>(), C, D, A(1 / sqrt_of(double(D))), a.rows.document.data,
                      a.rows.position.data, a.stream, std::uint32_t(double(a.dropout) * 4294967296.0),
                      A(1 / (1 - double(a.dropout))), workspace<RoomTag, A>(3 * C * std::max(q.rows(), y.rows()))});
    });
}

}  // namespace

void lsh_attention_forward(View q, View k, View v, View rotations, const SegmentGraph& graph, LshRule rule, View y,
                           View lse) {
    for_pairs("lsh_attention", q, k, v, rotations, graph, rule, y, lse,
              [&]<class S, class A>(const Pairs<S, A>& pairs) {
                  for_each_row(lse.count(), Forward<S, A>{pairs, y.as<S>(), lse.as<A>()});
              });
}

void lsh_attention_backward(View dy, View q, View k, View v, View rotations, View y, View lse,
                            const SegmentGraph& graph, LshRule rule, Grad dq, Grad dk, Grad dv) {
    for_pairs("lsh_attention backward", q, k, v, rotations, graph, rule, y, lse,
              [&]<class S, class A>(const Pairs<S, A>& pairs) {
                  for_each_row(q.rows() * rule.attention.heads,
                               Backward<S, A>{pairs, dy.as<S>(), y.as<S>(), lse.as<A>(), dq.as<S>(), dk.as<S>(),
                                              dv.as<S>(), dq.add, dk.add, dv.add});
              });
}

}  // namespace masquerade::DEVICE
