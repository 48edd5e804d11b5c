// SPDX-License-Identifier: MIT
// Linear algebra for Gaussians, in double, for matrices of a few hundred rows.
#pragma once
#include <cmath>

namespace masquerade {

// Replaces the symmetric a(n,n) = L L^T by the lower triangular L. Returns false if a is not positive definite; a then
// holds no meaningful values.
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

// Replaces the lower triangular l(n,n) by its inverse, which is lower triangular as well.
inline void invert_lower(double* l, int n) {
    for (int i = 0; i < n; i++) {
        double* row = l + i * n;
        const double inverse = 1 / row[i];
        for (int j = 0; j < i; j++) {  // the rows above row i already contain the inverse
            double sum = 0;
            for (int k = j; k < i; k++) sum += row[k] * l[k * n + j];
            row[j] = -inverse * sum;
        }
        row[i] = inverse;
    }
}

}  // namespace masquerade
