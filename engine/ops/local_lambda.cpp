// SPDX-License-Identifier: MIT
#include "engine/math/local_lambda.h"
#include "engine/ops/attention.h"
#include "engine/ops/launch.h"
#include "engine/ops/local_plan.h"

namespace masquerade::DEVICE {
namespace {

struct NearTag {};
struct QueriesTag {};
struct WeightTag {};
struct AskedTag {};

template <class S, class A>
struct Forward {
    LocalRows<S, A> of;
    A* weights;  // (N,H,W): for each query row and head, the factor of the value at each of the W distances
    S* y;
    HD void operator()(Lanes lanes, std::int64_t row) const {
        of.weigh(lanes, row, weights + row * of.W);
        of.read(lanes, row, weights + row * of.W, y + row * of.D);
    }
};

template <class S, class A>
struct Backward {
    LocalRows<S, A> of;
    const S* dy;
    A *weights, *asked, *dq;
    bool add;
    HD void operator()(Lanes lanes, std::int64_t n) const {
        for (std::int64_t row = n * of.H; row < (n + 1) * of.H; row++) {
            of.weigh(lanes, row, weights + row * of.W);
            of.read_grad(lanes, row, dy + row * of.D, asked + row * of.W, dq ? dq + row * of.D : nullptr, add);
        }
    }
};

// Returns what query row n adds to element i of de (W,C), the gradient of e. A row of e is the learned vector for one
// of the W distances between query and key.
template <class S, class A>
struct DistanceTerm {
    LocalRows<S, A> of;
    const A* asked;
    HD A operator()(std::int64_t n, int i) const {
        const int C = int(of.C()), c = i % C;
        return asked[(n * of.H + c / of.D) * of.W + i / C] * of.q[n * C + c];
    }
};

// Computes dv_j, the gradient of the value of key j: the sum of weights_o dy over all queries that see the key. dy is
// the gradient of the output of the query. weights_o is the factor of the value of the key in this output, where
// o - reach is the distance of the key from the query. `row` is key * H + head, for H heads.
template <class S, class A>
struct Values {
    LocalRows<S, A> of;
    const int *first, *queries;
    const S* dy;
    const A* weights;
    S* dv;
    bool add;
    HD void operator()(Lanes lanes, std::int64_t row) const {
        const std::int64_t key = row / of.H, head = row % of.H;
        store(lanes, of.D, dv + row * of.D, add, [&](int i) {
            A s(0);
            for (int at = first[key]; at < first[key + 1]; at++) {
                const std::int64_t query = queries[at] / of.W * of.H + head;
                s += weights[query * of.W + queries[at] % of.W] * A(dy[query * of.D + i]);
            }
            return s;
        });
    }
};

int reach_of(const char* op, const View& e, const Views& v, const SegmentGraph& graph, int heads, const View& y) {
    if (heads < 1 || y.columns() % heads) throw Error(op, ": ", heads, " heads, but ", seen("y", y));
    if (e.rows() % 2 == 0) throw Error(op, ": ", seen("e", e), ", expected 2 reach + 1 rows");
    for (int s = 0; s < v.count; s++) expect_shape(op, "v", v[s], {v[s].rows(), y.columns()}, y.dtype);
    check_attention_keys(op, v, graph);
    return int(e.rows() / 2);
}

template <class S, class A>
LocalRows<S, A> rows_of(const std::vector<int>& near, const View& q, const View& e, const Views& v, int heads) {
    return {table_of<NearTag>(near), int(e.rows()), heads, int(q.columns()) / heads, q.as<A>(), e.as<S>(), v.as<S>()};
}

}  // namespace

void local_lambda_forward(View q, View e, Views v, const SegmentGraph& graph, int heads, View y) {
    const int reach = reach_of("local_lambda", e, v, graph, heads, y);
    const std::vector<int> near = near_keys(graph, int(y.rows()), reach);
    for_type(y.dtype, [&]<class S, class A>(S, A) {
        const std::int64_t rows = y.rows() * heads;
        A* weights = workspace<WeightTag, A>(rows * e.rows());
        for_each_row(rows, Forward<S, A>{rows_of<S, A>(near, q, e, v, heads), weights, y.as<S>()});
    });
}

void local_lambda_backward(View dy, View q, View e, Views v, const SegmentGraph& graph, int heads, Grad dq, Grad de,
                           Grads dv) {
    const char* op = "local_lambda backward";
    const int reach = reach_of(op, e, v, graph, heads, dy);
    for (int s = 0; s < dv.count; s++) expect_grad(op, "dv", dv[s], v[s]);
    const std::vector<int> near = near_keys(graph, int(dy.rows()), reach), queries = queries_near(near, v);
    for_type(dy.dtype, [&]<class S, class A>(S, A) {
        const std::int64_t numbers = dy.rows() * heads * e.rows();
        A *weights = workspace<WeightTag, A>(numbers), *asked = workspace<AskedTag, A>(numbers);
        const LocalRows<S, A> of = rows_of<S, A>(near, q, e, v, heads);
        for_each_row_and_sums(dy.rows(), int(e.count()),
                              Backward<S, A>{of, dy.as<S>(), weights, asked, dq.as<A>(), dq.add},
                              ColumnSum(de, DistanceTerm<S, A>{of, asked}));
        const int *first = table_of<QueriesTag>(queries), *found = first;
        for (int s = 0; s < v.count; s++) found += v[s].rows();
        for (int s = 0; s < v.count; first += v[s++].rows())
            if (dv[s])
                for_each_row(v[s].rows() * heads,
                             Values<S, A>{of, first, found + 1, dy.as<S>(), weights, dv[s].as<S>(), dv[s].add});
    });
}

}  // namespace masquerade::DEVICE
