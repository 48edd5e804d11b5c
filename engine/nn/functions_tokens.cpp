// SPDX-License-Identifier: MIT
// Functions on the tape for embeddings, rotary positions, softmax attention, and selecting and replacing rows.
#include "engine/nn/functions.h"
#include "engine/tape/op_record.h"

#include <cmath>
#include <numeric>

namespace masquerade {
namespace {
struct SideBySideAttributes {
    // The op treats y and dy, both (M,2C), as (2M,C): row 2m is the first half of row m, and row 2m+1 its second half.
    // `both` (2M) lists the row of x that each half contains. `first` (2M) lists the same rows for first halves and
    // has -1 for second halves; `second` (2M) lists them for second halves and has -1 for first halves.
    Ints both, first, second;
    bool all;  // true if every row of x is the first half of a row of y
};

View as_single_rows(const View& y) { return part_of(y, 0, {2 * y.rows(), y.columns() / 2}); }
void side_by_side_record_forward(const Record& r) {
    gather_rows_forward(r.x(), r.as<SideBySideAttributes>().both, as_single_rows(r.y()));
}
void side_by_side_record_backward(const Record& r) {
    const auto& a = r.as<SideBySideAttributes>();
    const View dy = as_single_rows(r.dy());
    const Grad dx = r.dx();
    if (!a.all && !dx.add) gather_rows_backward(rows_of(dy, 0, 0), Ints{}, dx);  // without rows: sets dx to 0
    replace_rows_backward(dy, a.first, Grad{}, Grad{dx.view, dx.add || !a.all});
    replace_rows_backward(dy, a.second, Grad{}, Grad{dx.view, true});
}

struct RowsOfPartsAttributes {
    Ints of_b, of_a;  // of_b[n] is n if row n of the result comes from b, else -1; of_a[n] is n if it comes from a
};
void rows_of_parts_record_forward(const Record& r) {
    replace_rows_forward(r.x(0), r.as<RowsOfPartsAttributes>().of_b, r.x(1), r.y());
}
void rows_of_parts_record_backward(const Record& r) {
    const auto& p = r.as<RowsOfPartsAttributes>();
    replace_rows_backward(r.dy(), p.of_b, r.dx(0), Grad{});
    replace_rows_backward(r.dy(), p.of_a, r.dx(1), Grad{});
}

}  // namespace

Tensor* embedding(Tape& t, Ints ids, Tensor* w, const std::string& name) {
    return run_op(t, name, embedding_forward, embedding_backward, {w}, ids);
}

Tensor* rotary(Tape& t, Tensor* x, Ints positions, Tensor* rotary_table, int columns, const std::string& name) {
    return run_op(t, name, rotary_forward, rotary_backward, {x, rotary_table}, positions, columns);
}

Tensor* linear_rotary(Tape& t, Tensor* x, Tensor* w, Tensor* b, Ints positions, Tensor* rotary_table, int columns,
                      const std::string& name) {
    return run_op(t, name, linear_rotary_forward, linear_rotary_backward, {x, w, b, rotary_table}, positions, columns);
}

QueryKeyValue query_key_value(Tape& t, Tensor* x, Tensor* wq, Tensor* bq, Tensor* wkv, Tensor* bkv,
                              Tensor* rotary_table, Ints positions, int turned, const std::string& query_name,
                              const std::string& key_value_name) {
    Tensor *q = t.declare(query_name, {x->rows(), wq->rows()}, x->dtype),
           *kv = t.declare(key_value_name, {x->rows(), wkv->rows()}, x->dtype);
    t.run(Record("query_key_value")
              .reads({x, wq, bq, wkv, bkv, rotary_table})
              .makes({q, kv})
              .by(query_key_value_forward, query_key_value_backward, positions, turned));
    return {q, kv};
}

Tensor* attention(Tape& t, Tensor* q, const std::vector<Tensor*>& kv, const SegmentGraph& graph, int heads,
                  float dropout_rate, const RowNames& query_rows, const std::string& name) {
    Tensor *y = t.declare(name, q->shape, q->dtype),
           *lse = t.declare(name + ".lse", {q->rows(), heads}, arithmetic_of(q->dtype));
    const AttentionRule rule{heads, t.training() ? dropout_rate : 0, t.stream(name), query_rows};
    return t.run(
        Record("attention").reads({q}, kv).makes({y, lse}).by(attention_forward, attention_backward, &graph, rule));
}

Tensor* gather_rows(Tape& t, Tensor* x, Ints rows, const std::string& name) {
    return run_op(t, name, gather_rows_forward, gather_rows_backward, {x}, rows);
}

Tensor* replace_rows(Tape& t, Tensor* x, Ints which, Tensor* u, const std::string& name) {
    return run_op(t, name, replace_rows_forward, replace_rows_backward, {x, u}, which);
}

Tensor* rows_of_parts(Tape& t, Tensor* a, Tensor* b, const std::vector<char>& parts, const std::string& name) {
    std::vector<int> of[2];
    for (std::size_t n = 0; n < parts.size(); n++)
        for (int part : {0, 1}) of[part].push_back(parts[n] == part ? int(n) : -1);
    return t.run(Record("rows_of_parts")
                     .reads({a, b})
                     .makes({t.declare(name, a->shape, a->dtype)})
                     .by(rows_of_parts_record_forward, rows_of_parts_record_backward,
                         RowsOfPartsAttributes{t.ints(std::move(of[1])), t.ints(std::move(of[0]))}));
}

Tensor* side_by_side(Tape& t, Tensor* x, std::vector<int> first, std::vector<int> second, const std::string& name) {
    if (first.size() != second.size())
        throw Error("side_by_side of ", x->path, ": ", first.size(), " first rows and ", second.size(),
                    " second ones, expected as many");
    std::vector<int> both, to[2];
    for (std::size_t m = 0; m < first.size(); m++)
        for (int half : {0, 1}) {
            both.push_back(half ? second[m] : first[m]);
            to[half].push_back(both.back()), to[1 - half].push_back(-1);
        }
    const bool all = std::int64_t(first.size()) == x->rows();
    return t.run(Record("side_by_side")
                     .reads({x})
                     .makes({t.declare(name, {std::int64_t(first.size()), 2 * x->columns()}, x->dtype)})
                     .by(side_by_side_record_forward, side_by_side_record_backward,
                         SideBySideAttributes{t.ints(std::move(both)), t.ints(std::move(to[0])),
                                              t.ints(std::move(to[1])), all}));
}

Tensor* twice(Tape& t, Tensor* x, const std::string& name) {
    std::vector<int> rows(x->rows());
    std::iota(rows.begin(), rows.end(), 0);
    return side_by_side(t, x, rows, rows, name);
}

std::vector<double> make_rotary_table(int P, int D, double base) {
    std::vector<double> rotary_table;
    for (int p = 0; p < P; p++)
        for (int i = 0; i < D; i += 2) {
            double angle = p * std::pow(base, -double(i) / D);
            rotary_table.insert(rotary_table.end(), {std::cos(angle), std::sin(angle)});
        }
    return rotary_table;
}

}  // namespace masquerade
