// SPDX-License-Identifier: MIT
// Column sums of a matrix, with the same bits as on the CPU: the rows of each chunk of 64 are summed in order, then the
// sums of the chunks are added in order. A first kernel computes the sums of the chunks. Each of its warps sums one
// chunk of rows, but only the columns of its own 32 lanes, so that many warps share the work. A second kernel adds the
// sums of the chunks.
#pragma once
#include "engine/ops/cuda/packet.cuh"
#include "engine/ops/cuda/workspace.cuh"

namespace masquerade::DEVICE {

constexpr int rows_per_chunk = 64;

// A function of (row, column) that returns the element of a matrix at this place, in float. The rows of the matrix
// begin `step` numbers apart. In this file, `term` is the function whose values are summed.
template <class S>
struct ElementOf {
    const S* x;
    std::int64_t step;
    HD float operator()(std::int64_t row, int c) const { return float(x[row * step + c]); }
};

// The number of columns that a lane sums if terms_in_packets() is true: the columns of one packet of 16 bytes. If
// terms_in_packets() is false, a lane sums 1 column.
template <class F>
constexpr int columns_of_lane = 1;
template <class S>
constexpr int columns_of_lane<ElementOf<S>> = per_packet<S>;
// Returns true if the terms are elements of a matrix whose rows all begin at a multiple of 16 bytes, so that a lane can
// read packets.
template <class F>
bool terms_in_packets(const F&) {
    return false;
}
template <class S>
bool terms_in_packets(const ElementOf<S>& element) {
    return rows_in_packets(element.x, element.step);
}

// Sets x[k] to term(row, c + k) for k < n.
template <class F, class A, int n>
__device__ void read_terms(const F& term, std::int64_t row, int c, A (&x)[n]) {
    if constexpr (n == 1)
        x[0] = term(row, c);
    else
        read_numbers(term.x + row * term.step + c, x);
}

// Writes the column sums of one chunk of 64 rows to a row of `parts`. A lane sums n columns. The rows of `parts` have
// `width` numbers, a multiple of n, so that every lane can write its n sums as whole packets of 16 bytes if n is not 1.
template <int n, class A, class F>
__global__ void __launch_bounds__(32) chunk_sums_kernel(std::int64_t rows, int width, F term, A* parts) {
    const int c = (int(blockIdx.y) * 32 + int(threadIdx.x)) * n;
    if (c >= width) return;
    const std::int64_t first = std::int64_t(blockIdx.x) * rows_per_chunk;
    const int count = rows - first < rows_per_chunk ? int(rows - first) : rows_per_chunk;
    A part[n] = {};
#pragma unroll 16
    for (int i = 0; i < count; i++) {
        A x[n];
        read_terms(term, first + i, c, x);
#pragma unroll
        for (int k = 0; k < n; k++) part[k] += x[k];
    }
    write_numbers(parts + std::int64_t(blockIdx.x) * width + c, part);
}

template <class A>
__global__ void __launch_bounds__(32)
    add_chunks_kernel(std::int64_t chunks, int width, const A* parts, int columns, A* to, bool add) {
    const int c = int(blockIdx.x) * 32 + int(threadIdx.x);
    if (c >= columns) return;
    A total(0);
#pragma unroll 16
    for (std::int64_t chunk = 0; chunk < chunks; chunk++) total += parts[chunk * width + c];
    put(to[c], total, add);
}

// Sets to[c] to the sum of column c of parts(chunks, width) or, if `add` is set, adds the sum to to[c].
template <class A>
void add_chunks(std::int64_t chunks, int width, const A* parts, int columns, A* to, bool add) {
    launch<add_chunks_kernel<A>>(unsigned(columns + 31) / 32, 32, 0, chunks, width, parts, columns, to, add);
}

struct ColumnParts {};

template <int n, class A, class F>
void launch_chunk_sums(std::int64_t rows, int columns, const F& term, A* to, bool add) {
    const std::int64_t chunks = (rows + rows_per_chunk - 1) / rows_per_chunk;
    const int lanes = (columns + n - 1) / n, width = lanes * n;
    A* parts = workspace<ColumnParts, A>(chunks * width);
    if (chunks > 0)
        launch<chunk_sums_kernel<n, A, F>>(dim3(unsigned(chunks), unsigned(lanes + 31) / 32), 32, 0, rows, width, term,
                                           parts);
    add_chunks(chunks, width, parts, columns, to, add);
}

// Sets to[c] to the sum over rows n of term(n, c) or, if `add` is set, adds the sum to to[c].
template <class A, class F>
void launch_column_sums(std::int64_t rows, int columns, F term, A* to, bool add) {
    if (!to || columns <= 0) return;
    if (terms_in_packets(term))
        launch_chunk_sums<columns_of_lane<F>>(rows, columns, term, to, add);
    else
        launch_chunk_sums<1>(rows, columns, term, to, add);
}

}  // namespace masquerade::DEVICE
