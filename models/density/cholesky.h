// SPDX-License-Identifier: MIT
// Linear algebra for Gaussians, in double, for matrices of up to a few thousand rows.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace masquerade {

// Replaces the symmetric a(n,n) = L L^T by the lower triangular L. Returns false if a is not positive definite; a then
// holds no meaningful values.
inline bool cholesky(double* a, std::int64_t n) {
    for (std::int64_t j = 0; j < n; j++) {
        double* column = a + j * n;
        for (std::int64_t i = j; i < n; i++) {
            double* row = a + i * n;
            double sum = row[j];
            for (std::int64_t k = 0; k < j; k++) sum -= row[k] * column[k];
            if (i > j)
                row[j] = sum / column[j];
            else if (sum > 0)
                column[j] = std::sqrt(sum);
            else
                return false;
        }
        for (std::int64_t i = 0; i < j; i++) a[i * n + j] = 0;
    }
    return true;
}

// Replaces the lower triangular l(n,n) by its inverse, which is lower triangular as well. Row i of the inverse is
// computed from the rows of the inverse above it, which are read in the order in which they lie in memory: to read
// them column by column would take several times as long.
inline void invert_lower(double* l, std::int64_t n) {
    std::vector<double> sums(n);
    for (std::int64_t i = 0; i < n; i++) {
        double* row = l + i * n;
        const double inverse = 1 / row[i];
        std::fill(sums.begin(), sums.end(), 0.0);
        for (std::int64_t k = 0; k < i; k++) {
            const double *above = l + k * n, factor = row[k];
            for (std::int64_t j = 0; j <= k; j++) sums[j] += factor * above[j];
        }
        for (std::int64_t j = 0; j < i; j++) row[j] = -inverse * sums[j];
        row[i] = inverse;
    }
}

}  // namespace masquerade
