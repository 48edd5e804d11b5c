// SPDX-License-Identifier: MIT
// Sums over the rows of a matrix, one for each column, such as the gradients of biases and of the weights of norms. An
// op describes its sums with ColumnSum, and for_each_row_and_sums() of launch.h computes them.
#pragma once
#include "engine/math/lanes.h"
#include "engine/ops/table.h"

namespace masquerade {

// Describes a sum for each column: to[c] is set to the sum over all rows n of term(n, c) or, if `add` is true, the sum
// is added to to[c]. If `to` is null, the sum is not computed. ColumnSum(dw, term) takes `to` and `add` from a Grad.
template <class A, class Term>
struct ColumnSum {
    A* to;
    bool add;
    Term term;
    ColumnSum(const Grad& sums, const Term& f) : to(sums.view.as<A>()), add(sums.add), term(f) {}
};
template <class Term>
ColumnSum(const Grad&, const Term& f) -> ColumnSum<decltype(f(0, 0)), Term>;

// The term f(n, x) of a column sum, where x[0], x[1], ... are the elements of `matrices` in row n and column c. The rows
// of each matrix begin `step` numbers apart. On CUDA, a lane sums several columns of such a term, so that it can read
// each matrix by packets of 16 bytes.
template <class S, class A, int count, class F>
struct MatrixTerm {
    const S* matrices[count];
    std::int64_t step;
    F f;
    HD A operator()(std::int64_t n, int c) const {
        A x[count];
        for (int m = 0; m < count; m++) x[m] = A(matrices[m][n * step + c]);
        return f(n, x);
    }
};

}  // namespace masquerade
