// SPDX-License-Identifier: MIT
// Column sums of a matrix, with the same bits as on the CPU: the rows of each chunk of 64 are summed in order, then the
// sums of the chunks are added in order. A first kernel computes the sums of the chunks. Each of its warps sums one
// chunk of rows, but only the columns of its own 32 lanes, so that many warps share the work. A second kernel adds the
// sums of the chunks (chunks.cuh). If an op also computes each row, and can read all rows by packets, the first kernel
// does this, too (rows_and_chunks_kernel of launch.cuh).
#pragma once
#include <algorithm>
#include <type_traits>

#include "engine/ops/column_sum.h"
#include "engine/ops/cuda/chunks.cuh"
#include "engine/ops/cuda/packet.cuh"

namespace masquerade::DEVICE {

constexpr int rows_per_chunk = 64;

// The number of columns that a lane sums: those of one packet of 16 bytes if all terms are computed from elements of
// the same matrices (MatrixTerm), whose rows all begin at a multiple of 16 bytes, else 1. In this file, a `term` is the
// function of (row, column) whose values are summed.
template <class... Terms>
constexpr int columns_of_lane = 1;
template <class S, class A, int count, class... F>
constexpr int columns_of_lane<MatrixTerm<S, A, count, F>...> = per_packet<S>;
template <class... Terms>
bool terms_in_packets(const Terms&...) {
    return false;
}
template <class S, class A, int count, class F, class... Others>
bool terms_in_packets(const MatrixTerm<S, A, count, F>& term, const MatrixTerm<S, A, count, Others>&... others) {
    const auto aligned = [&](const S* matrix) { return rows_in_packets(matrix, term.step); };
    return std::all_of(term.matrices, term.matrices + count, aligned) && (term.has_same_matrices(others) && ...);
}

// Adds term t(row, c + k) to sums[t][k], for all terms and k < n. If n is not 1, the terms are MatrixTerms that have
// the same matrices.
template <class A, int n, class Term, class... Others>
__device__ void add_terms(std::int64_t row, int c, A (&sums)[1 + sizeof...(Others)][n], const Term& term,
                          const Others&... others) {
    int t = 0;
    if constexpr (n == 1) {
        sums[t++][0] += term(row, c);
        ((sums[t++][0] += others(row, c)), ...);
    } else {
        constexpr int count = std::extent_v<decltype(term.matrices)>;
        A elements[count][n];
#pragma unroll
        for (int m = 0; m < count; m++) read_numbers(term.matrices[m] + row * term.step + c, elements[m]);
#pragma unroll
        for (int k = 0; k < n; k++) {
            A x[count];
#pragma unroll
            for (int m = 0; m < count; m++) x[m] = elements[m][k];
            t = 0;
            sums[t++][k] += term.f(row, x);
            ((sums[t++][k] += others.f(row, x)), ...);
        }
    }
}

// Writes the sums of the columns c to c + n - 1 of one chunk of 64 rows to `parts`, for each term a row of `width`
// numbers. All terms are summed in one pass, which reads each matrix once. `width` is a multiple of n, so that every lane
// can write its n sums as whole packets of 16 bytes if n is not 1.
template <int n, class A, class... Terms>
__device__ void sum_chunk(std::int64_t chunk, int c, std::int64_t rows, int width, A* parts, const Terms&... terms) {
    constexpr int count_of_terms = sizeof...(Terms);
    if (c >= width) return;
    const std::int64_t first = chunk * rows_per_chunk;
    const int count = rows - first < rows_per_chunk ? int(rows - first) : rows_per_chunk;
    A sums[count_of_terms][n] = {};
#pragma unroll 16
    for (int i = 0; i < count; i++) add_terms(first + i, c, sums, terms...);
#pragma unroll
    for (int t = 0; t < count_of_terms; t++) write_numbers(parts + (chunk * count_of_terms + t) * width + c, sums[t]);
}
template <int n, class A, class... Terms>
__global__ void __launch_bounds__(32)
    chunk_sums_kernel(std::int64_t rows, int width, unsigned across, A* parts, Terms... terms) {
    sum_chunk<n>(blockIdx.x / across, (int(blockIdx.x % across) * 32 + int(threadIdx.x)) * n, rows, width, parts,
                 terms...);
}

// Calls start(chunks, width, parts), which launches a kernel that sums the chunks of rows for all sums. Lanes sum n
// columns each, and `width` is the number of columns, rounded up to a multiple of n. Then adds the sums of the chunks,
// at once or later (Grad::late).
template <int n, class... Terms, class Start>
void launch_chunk_sums(std::int64_t rows, int columns, Start start, const ColumnSum<float, Terms>&... sums) {
    const std::int64_t chunks = (rows + rows_per_chunk - 1) / rows_per_chunk;
    const int width = (columns + n - 1) / n * n, step = int(sizeof...(sums)) * width;
    static_assert(sizeof...(sums) <= most_sums_of_op);
    const bool late = (sums.late && ...);
    float* parts = memory_of_chunks(chunks * step, late);
    if (chunks > 0) start(unsigned(chunks), width, parts);
    int before = 0;
    add_chunks({{parts + width * before++, chunks, step, columns, sums.to, sums.add}...}, late);
}

// Computes column sums over the rows. If all of them are asked for, they take as many launches as one.
template <class... Terms>
void launch_column_sums(std::int64_t rows, int columns, const ColumnSum<float, Terms>&... sums) {
    if (columns <= 0) return;
    if (!(sums.to && ...)) {
        if constexpr (sizeof...(sums) > 1) (launch_column_sums(rows, columns, sums), ...);
        return;
    }
    const auto by_lanes_of = [&](auto columns_each) {
        constexpr int n = columns_each;
        const auto start = [&](unsigned chunks, int width, float* parts) {
            const unsigned across = unsigned(width + 32 * n - 1) / (32 * n);
            // All blocks in one dimension: the other ones have at most 65,535, and the distances of local_lambda more.
            launch<chunk_sums_kernel<n, float, Terms...>>(chunks * across, 32, 0, rows, width, across, parts,
                                                          sums.term...);
        };
        launch_chunk_sums<n>(rows, columns, start, sums...);
    };
    constexpr int n = columns_of_lane<Terms...>;
    if (n > 1 && terms_in_packets(sums.term...))
        by_lanes_of(std::integral_constant<int, n>());
    else
        by_lanes_of(std::integral_constant<int, 1>());
}

}  // namespace masquerade::DEVICE
