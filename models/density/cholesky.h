// SPDX-License-Identifier: MIT
// The little linear algebra that a Gaussian needs, in double, for matrices of a few hundred rows.
#pragma once
#include <cmath>

namespace masquerade {

// The symmetric a(n,n) = L L^T: L in its lower triangle, zeros above. False where a is not positive definite;
// then it is spoilt.
inline bool cholesky(double* a, int n) {
    for (int j = 0; j < n; j++) {
        double* column = a + j * n;
        for (int i = j; i < n; i++) {
            double* row = a + i * n;
            double sum = row[j];
            for (int k = 0; k < j; k++) sum -= row[k] * column[k];
            if (i > j)
                row[j] = sum / column[j];
            else if (sum > 0)
                column[j] = std::sqrt(sum);
            else
                return false;
        }
        for (int i = 0; i < j; i++) a[i * n + j] = 0;
    }
    return true;
}

// L(n,n), lower triangular, becomes its inverse, lower triangular, too.
inline void invert_lower(double* l, int n) {
    for (int i = 0; i < n; i++) {
        double* row = l + i * n;
        const double inverse = 1 / row[i];
        for (int j = 0; j < i; j++) {  // row i of the inverse needs those above it, which are ready
            double sum = 0;
            for (int k = j; k < i; k++) sum += row[k] * l[k * n + j];
            row[j] = -inverse * sum;
        }
        row[i] = inverse;
    }
}

}  // namespace masquerade
