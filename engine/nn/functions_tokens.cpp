// SPDX-License-Identifier: MIT
// Tokens, positions, attention and the choice of rows.
#include "engine/nn/attention_record.h"
#include "engine/nn/functions.h"

#include <cmath>
#include <numeric>

namespace masquerade {
namespace {
struct RotaryAttributes {
    Ints positions;
    int columns;
};
struct SideBySideAttributes {
    Ints both, first, second;  // for y as (2M,C): rows of x, of dx that get the first half of a row of dy, the second
    bool all;                  // each row of x is a first half
};
}  // namespace

// The records' functions: named, so that a debugger shows and breaks on them.
namespace record {

void embedding_forward(const Record& r) { masquerade::embedding_forward(r.as<Ints>(), r.x(), r.y()); }
void embedding_backward(const Record& r) { masquerade::embedding_backward(r.dy(), r.as<Ints>(), r.dx()); }

void rotary_forward(const Record& r) {
    const auto& a = r.as<RotaryAttributes>();
    masquerade::rotary_forward(r.x(0), a.positions, r.x(1), a.columns, r.y());
}
void rotary_backward(const Record& r) {
    const auto& a = r.as<RotaryAttributes>();
    masquerade::rotary_backward(r.dy(), a.positions, r.x(1), a.columns, r.dx(0));
}

void linear_rotary_forward(const Record& r) {
    const auto& a = r.as<RotaryAttributes>();
    masquerade::linear_rotary_forward(r.x(0), r.x(1), r.x(2), a.positions, r.x(3), a.columns, r.y());
}
void linear_rotary_backward(const Record& r) {
    const auto& a = r.as<RotaryAttributes>();
    Grad dx = r.dx(0), dw = r.dx(1), db = r.dx(2);
    masquerade::linear_rotary_backward(r.dy(), r.x(0), r.x(1), a.positions, r.x(3), a.columns, dx, dw, db);
}

Views key_values(const Record& r) {
    Views kv;
    for (std::size_t i = 1; i < r.in.size(); i++) kv.v[kv.count++] = r.in[i]->view();
    return kv;
}
void attention_forward(const Record& r) {
    const auto& a = r.as<AttentionAttributes>();
    masquerade::attention_forward(r.x(0), key_values(r), *a.graph, a.rule, r.y(0), r.y(1));
}
void attention_backward(const Record& r) {
    const auto& a = r.as<AttentionAttributes>();
    Grad dq = r.dx(0);
    Grads dkv;
    for (std::size_t i = 1; i < r.in.size(); i++) dkv.g[dkv.count++] = r.dx(int(i));
    masquerade::attention_backward(r.dy(), r.x(0), key_values(r), r.y(0), r.y(1), *a.graph, a.rule, dq, dkv);
}

void gather_rows_forward(const Record& r) { masquerade::gather_rows_forward(r.x(), r.as<Ints>(), r.y()); }
void gather_rows_backward(const Record& r) { masquerade::gather_rows_backward(r.dy(), r.as<Ints>(), r.dx()); }

void replace_rows_forward(const Record& r) { masquerade::replace_rows_forward(r.x(0), r.as<Ints>(), r.x(1), r.y()); }
void replace_rows_backward(const Record& r) {
    Grad dx = r.dx(0), du = r.dx(1);
    masquerade::replace_rows_backward(r.dy(), r.as<Ints>(), dx, du);
}

View as_single_rows(View y) {
    y.shape = {2 * y.rows(), y.columns() / 2};
    return y;
}
void side_by_side_forward(const Record& r) {
    masquerade::gather_rows_forward(r.x(), r.as<SideBySideAttributes>().both, as_single_rows(r.y()));
}
void side_by_side_backward(const Record& r) {
    const auto& a = r.as<SideBySideAttributes>();
    const View dy = as_single_rows(r.dy());
    const Grad dx = r.dx();
    if (!a.all && !dx.add) masquerade::gather_rows_backward(rows_of(dy, 0, 0), Ints{}, dx);  // zeros
    masquerade::replace_rows_backward(dy, a.first, Grad{}, Grad{dx.view, dx.add || !a.all});
    masquerade::replace_rows_backward(dy, a.second, Grad{}, Grad{dx.view, true});
}

}  // namespace record

Tensor* embedding(Tape& t, Ints ids, Tensor* w, const std::string& name) {
    return t.run(Record("embedding")
                     .reads({w})
                     .makes({t.declare(name, {ids.count, w->columns()}, w->dtype)})
                     .by(record::embedding_forward, record::embedding_backward, ids));
}

Tensor* rotary(Tape& t, Tensor* x, Ints positions, Tensor* turns, int columns, const std::string& name) {
    return t.run(Record("rotary")
                     .reads({x, turns})
                     .makes({t.declare(name, x->shape, x->dtype)})
                     .keeps({turns})
                     .by(record::rotary_forward, record::rotary_backward, RotaryAttributes{positions, columns}));
}

Tensor* linear_rotary(Tape& t, Tensor* x, Tensor* w, Tensor* b, Ints positions, Tensor* turns, int columns,
                      const std::string& name) {
    return t.run(
        Record("linear_rotary")
            .reads({x, w, b, turns})
            .makes({t.declare(name, {x->rows(), w->shape[0]}, x->dtype)})
            .keeps({x, w, turns})
            .by(record::linear_rotary_forward, record::linear_rotary_backward, RotaryAttributes{positions, columns}));
}

Tensor* attention(Tape& t, Tensor* q, const std::vector<Tensor*>& kv, const SegmentGraph& graph, int heads,
                  float dropout_rate, const RowNames& query_rows, const std::string& name) {
    Tensor *y = t.declare(name, q->shape, q->dtype),
           *lse = t.declare(name + ".lse", {q->rows(), heads}, arithmetic_of(q->dtype));
    AttentionRule rule{heads, t.training() ? dropout_rate : 0, t.stream(name), query_rows};
    Record r = Record("attention")
                   .reads({q})
                   .makes({y, lse})
                   .keeps({q})
                   .by(record::attention_forward, record::attention_backward, AttentionAttributes{&graph, rule});
    r.in.insert(r.in.end(), kv.begin(), kv.end());
    r.keep = r.in;
    r.keep.insert(r.keep.end(), {y, lse});
    return t.run(std::move(r));
}

Tensor* gather_rows(Tape& t, Tensor* x, Ints rows, const std::string& name) {
    return t.run(Record("gather_rows")
                     .reads({x})
                     .makes({t.declare(name, {rows.count, x->columns()}, x->dtype)})
                     .by(record::gather_rows_forward, record::gather_rows_backward, rows));
}

Tensor* replace_rows(Tape& t, Tensor* x, Ints which, Tensor* u, const std::string& name) {
    return t.run(Record("replace_rows")
                     .reads({x, u})
                     .makes({t.declare(name, x->shape, x->dtype)})
                     .by(record::replace_rows_forward, record::replace_rows_backward, which));
}

Tensor* side_by_side(Tape& t, Tensor* x, std::vector<int> first, std::vector<int> second, const std::string& name) {
    if (first.size() != second.size())
        throw Error(text("side_by_side of ", x->path, ": ", first.size(), " first rows and ", second.size(),
                         " second ones, expected as many"));
    std::vector<int> both, to[2];
    for (std::size_t m = 0; m < first.size(); m++)
        for (int half : {0, 1}) {
            both.push_back(half ? second[m] : first[m]);
            to[half].push_back(both.back()), to[1 - half].push_back(-1);
        }
    const bool all = std::int64_t(first.size()) == x->rows();
    const auto held = [&](std::vector<int>& numbers) { return t.ints(t.hold(std::move(numbers))); };
    return t.run(Record("side_by_side")
                     .reads({x})
                     .makes({t.declare(name, {std::int64_t(first.size()), 2 * x->columns()}, x->dtype)})
                     .by(record::side_by_side_forward, record::side_by_side_backward,
                         SideBySideAttributes{held(both), held(to[0]), held(to[1]), all}));
}

Tensor* twice(Tape& t, Tensor* x, const std::string& name) {
    std::vector<int> rows(std::size_t(x->rows()));
    std::iota(rows.begin(), rows.end(), 0);
    return side_by_side(t, x, rows, rows, name);
}

std::vector<double> rotary_turns(int P, int D, double base) {
    std::vector<double> turns(std::size_t(P) * std::size_t(D));
    for (int p = 0; p < P; p++)
        for (int i = 0; i < D; i += 2) {
            double angle = p * std::pow(base, -double(i) / D);
            turns[std::size_t(p) * std::size_t(D) + std::size_t(i)] = std::cos(angle);
            turns[std::size_t(p) * std::size_t(D) + std::size_t(i) + 1] = std::sin(angle);
        }
    return turns;
}

}  // namespace masquerade
