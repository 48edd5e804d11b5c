// SPDX-License-Identifier: MIT
// Sums over the rows of a matrix, one for each column, such as the gradients of biases and of the weights of norms. An
// op describes its sums with ColumnSum, and for_each_row_and_sums() of launch.h computes them.
#pragma once
#include <algorithm>

#include "engine/math/lanes.h"
#include "engine/ops/table.h"

namespace masquerade {

// Describes a sum for each column: to[c] is set to the sum over all rows n of term(n, c) or, if `add` is true, the sum
// is added to to[c]. If `to` is null, the sum is not computed. ColumnSum(dw, term) takes all but the term from a Grad.
template <class A, class Term>
struct ColumnSum {
    A* to;
    bool add, late;
    Term term;
    ColumnSum(const Grad& sums, const Term& f) : to(sums.as<A>()), add(sums.add), late(sums.late), term(f) {}
};
template <class Term>
ColumnSum(const Grad&, const Term& f) -> ColumnSum<decltype(f(0, 0)), Term>;

// The term f(n, x) of a column sum, where x[0], x[1], ... are the elements of `matrices` in row n and column c. The
// rows of each matrix begin `step` numbers apart. On CUDA, a thread sums several neighbouring columns of such a term,
// and reads 16 bytes of each matrix at a time, if all sums of the op have the same matrices.
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
    template <class Other>
    bool has_same_matrices(const MatrixTerm<S, A, count, Other>& other) const {
        return step == other.step && std::equal(matrices, matrices + count, other.matrices);
    }
};
// The matrices are stored as S, and have the same shape. f computes with A.
template <class S, class A, class F, class... Others>
MatrixTerm<S, A, 1 + sizeof...(Others), F> matrix_term(const F& f, const View& first, const Others&... others) {
    return {{first.as<S>(), others.template as<S>()...}, first.columns(), f};
}

// For matrix_term(): the elements of the first matrix themselves are summed.
struct Element {
    template <class A, int count>
    HD A operator()(std::int64_t, const A (&x)[count]) const {
        return x[0];
    }
};

}  // namespace masquerade
