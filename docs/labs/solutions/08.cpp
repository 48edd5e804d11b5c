// SPDX-License-Identifier: MIT
// Lab 8, solved. docs/ops/state_attention.md derives the formulas, for all kinds of masks in the engine.
#include "docs/labs/08/lab.h"

#include <algorithm>
#include <cmath>
#include <vector>

void features(int M, int D, const double* w, const double* x, double* phi) {
    double square = 0;
    for (int d = 0; d < D; d++) square += x[d] * x[d];
    for (int m = 0; m < M; m++) {
        double along = 0;
        for (int d = 0; d < D; d++) along += w[m * D + d] * x[d];
        phi[m] = std::exp(along - square / 2) / std::sqrt(double(M));
    }
}

namespace {

// Sums over all rows that were added: `values` (M,D) sums b v^T, and `total` (M) sums b times of_total.
struct State {
    State(int slots, int columns)
        : M(slots), D(columns), values(std::size_t(slots * columns), 0.0), total(std::size_t(slots), 0.0) {}
    void add(const double* b, const double* v, double of_total) {
        for (int m = 0; m < M; m++) {
            total[std::size_t(m)] += b[m] * of_total;
            for (int d = 0; d < D; d++) values[std::size_t(m * D + d)] += b[m] * v[d];
        }
    }
    double at(int m, int d) const { return values[std::size_t(m * D + d)]; }
    int M, D;
    std::vector<double> values, total;
};

// Computes y (D), the output row of a query with the features a (M). Returns the divisor, by which the sums were
// divided.
double read(const State& state, const double* a, double* y) {
    double divisor = 0;
    std::fill_n(y, state.D, 0.0);
    for (int m = 0; m < state.M; m++) {
        divisor += a[m] * state.total[std::size_t(m)];
        for (int d = 0; d < state.D; d++) y[d] += a[m] * state.at(m, d);
    }
    for (int d = 0; d < state.D; d++) y[d] /= divisor;
    return divisor;
}

}  // namespace

void linear_attention(int N, int M, int D, const double* a, const double* b, const double* v, double* y) {
    State state(M, D);
    for (int i = 0; i < N; i++) {
        state.add(b + i * M, v + i * D, 1);
        read(state, a + i * M, y + i * D);
    }
}

void linear_attention_backward(int N, int M, int D, const double* a, const double* b, const double* v, const double* dy,
                               double* da, double* db, double* dv) {
    // along: the dot product dy . y of each row
    std::vector<double> divisor(std::size_t(N), 0), along(std::size_t(N), 0), y(std::size_t(D), 0);
    State state(M, D);
    for (int i = 0; i < N; i++) {
        state.add(b + i * M, v + i * D, 1);
        const double n = divisor[std::size_t(i)] = read(state, a + i * M, y.data());
        for (int d = 0; d < D; d++) along[std::size_t(i)] += dy[i * D + d] * y[std::size_t(d)];
        for (int m = 0; m < M; m++) {
            double gain = -along[std::size_t(i)] * state.total[std::size_t(m)];
            for (int d = 0; d < D; d++) gain += dy[i * D + d] * state.at(m, d);
            da[i * M + m] = gain / n;
        }
    }
    State adjoint(M, D);  // sums over the rows from the last row back to row j, as dv_j and db_j need them
    for (int j = N - 1; j >= 0; j--) {
        std::vector<double> shares(a + j * M, a + (j + 1) * M);
        for (double& share : shares) share /= divisor[std::size_t(j)];
        adjoint.add(shares.data(), dy + j * D, along[std::size_t(j)]);
        std::fill_n(dv + j * D, D, 0.0);
        for (int m = 0; m < M; m++) {
            db[j * M + m] = -adjoint.total[std::size_t(m)];
            for (int d = 0; d < D; d++) {
                db[j * M + m] += adjoint.at(m, d) * v[j * D + d];
                dv[j * D + d] += adjoint.at(m, d) * b[j * M + m];
            }
        }
    }
}
