// SPDX-License-Identifier: MIT
// Included by ops that compute each row, or each number, of a tensor independently. Such an op is one .cpp file for
// all devices: g++ compiles it into namespace cpu, and nvcc (-x cu) into namespace cuda. For tests, g++ also compiles
// the CUDA form of the file into namespace fibers. The file defines a function of one row or of one number, and passes
// it to for_each_row, store_points or for_each_point, as a functor or as a row_call() or point_call() of ops/calls.h.
// for_type() calls a function with the C++ types of a tensor.
#pragma once
#include "engine/math/lanes.h"
#include "engine/ops/table.h"

#ifdef HAS_WARPS
#include "engine/ops/cuda/launch.cuh"
#include "engine/ops/cuda/workspace.cuh"
#else
#define DEVICE cpu
#include "engine/ops/cpu/draws.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/cpu/workspace.h"
#endif
#include "engine/ops/column_sum.h"

namespace masquerade {

// Calls f(S(), A()), where S is the C++ type in which a tensor is stored, and A the type in which ops compute with its
// numbers.
template <class F>
void for_type(DType type, F f) {
    switch (type) {
        case DType::f32: return f(float(), float());
        case DType::bf16: return f(bfloat16(), float());
#ifdef HAS_WARPS
        default: throw Error("no CUDA form for ", name_of(type));
#else
        case DType::f64: return f(double(), double());
        case DType::c128: return f(complex(), complex());
#endif
    }
}

namespace DEVICE {

#ifdef HAS_WARPS
using Lanes = WarpLanes;  // the 32 threads of a warp, which compute a row together

// Returns a stage of for_each_row(). make(lanes) returns the stage as a function object that computes rows with
// `lanes`. On CUDA, `make` is called for two types of lanes. If all rows are aligned, the stage runs with the type
// whose lanes compute several consecutive numbers of type S at a time: as many as a packet of 16 bytes has
// (cuda/packet_rows.cuh). If for_each_row() gets several stages, all must come from in_packets().
template <class S, class Make>
auto in_packets(Make make) {
    auto packed = make(GroupLanes<per_packet<S>>{});
    auto plain = make(Lanes{});
    return TwoForms<decltype(packed), decltype(plain)>{packed, plain};
}
#else
using Lanes = OneLane;

template <class S, class Make>
auto in_packets(Make make) {
    return make(Lanes{});
}
// Returns an address at which kernels can read `numbers`. On the CPU, the address is valid while `numbers` exists. On
// CUDA, it is valid until the next call with the same Tag; each table that an op uses has its own Tag.
template <class Tag>
const int* table_of(const std::vector<int>& numbers) {
    return numbers.data();
}

// For CUDA, launch.cuh defines the following functions.
//
// Calls each stage(lanes, row) for every row. Rows are processed eight at a time: a stage runs on all eight rows before
// the next stage begins. This order is allowed, because a stage reads only what earlier stages have written to the same
// row.
template <class... Stages>
void for_each_row(std::int64_t rows, Stages... stages) {
    constexpr std::int64_t at_once = 8;
    parallel_for(rows, 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t first = begin; first < end; first += at_once) {
            const std::int64_t last = first + at_once < end ? first + at_once : end;
            auto run = [&](const auto& f) {
                for (std::int64_t row = first; row < last; row++) f(OneLane{}, row);
            };
            (run(stages), ...);
        }
    });
}
// Like for_each_row(), for rows that take long to compute: the next free thread takes the next row, whereas
// for_each_row() gives each thread an equal share of the rows.
template <class F>
void for_each_long_row(std::int64_t rows, F f) {
    parallel_each(rows, [&](std::int64_t row) { f(OneLane{}, row); });
}
// Calls f(i) for every i in [0, n).
template <class F>
void for_each_point(std::int64_t n, F f) {
    parallel_for(n, 16384, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i++) f(i);
    });
}
// Sets to[i] = f(i) or, if `add` is true, to[i] += f(i), for every i in [0, n).
template <class S, class F>
void store_points(std::int64_t n, S* to, bool add, F f) {
    parallel_for(n, 16384, [&](std::int64_t begin, std::int64_t end) {
        store(OneLane{}, end - begin, to + begin, add, [&](std::int64_t i) { return f(begin + i); });
    });
}

// Adds the terms of row n to the partial sums of all columns: parts[c] += term(n, c).
template <class A, class Term>
void add_row(const Term& term, std::int64_t n, int columns, A* __restrict parts) {
    for (int c = 0; c < columns; c++) parts[c] += term(n, c);
}
// Adds up the partial sums of all chunks of rows, in order. Stores the totals in sum.to or, if sum.add is true, adds
// them. The partial sums of a chunk are a row of `parts`; the rows of `parts` are `stride` numbers apart.
template <class A, class Term>
void add_parts(const ColumnSum<A, Term>& sum, const A* parts, std::int64_t chunks, std::int64_t stride, int columns) {
    constexpr int block = 64;
    for (int begin = 0; begin < columns; begin += block) {
        int width = columns - begin < block ? columns - begin : block;
        A total[block] = {};
        for (std::int64_t k = 0; k < chunks; k++)
            for (int c = 0; c < width; c++) total[c] += parts[k * stride + begin + c];
        for (int c = 0; c < width; c++) put(sum.to[begin + c], total[c], sum.add);
    }
}

struct ColumnParts {};

// Calls f(lanes, row) for every row and, while the row is in cache, adds the terms of the row to the column sums. The
// rows of each chunk of 64 are summed first, then the sums of the chunks are added, both in order. The sums therefore
// do not depend on the number of threads.
template <class A, class F, class... Terms>
void for_each_row_and_sums(std::int64_t rows, int columns, F f, ColumnSum<A, Terms>... sums) {
    constexpr std::int64_t chunk = 64;
    const std::int64_t chunks = (rows + chunk - 1) / chunk, width = std::int64_t(sizeof...(sums)) * columns;
    A* parts = workspace<ColumnParts, A>(chunks * width);
    parallel_each(chunks, [&](std::int64_t k) {
        for (std::int64_t i = k * width; i < (k + 1) * width; i++) parts[i] = A(0);
        for (std::int64_t n = k * chunk; n < rows && n < (k + 1) * chunk; n++) {
            f(OneLane{}, n);
            A* part = parts + k * width;
            ((sums.to ? add_row(sums.term, n, columns, part) : void(), part += columns), ...);
        }
    });
    ((sums.to ? add_parts(sums, parts, chunks, width, columns) : void(), parts += columns), ...);
}
#endif

// Sets each number i of the gradient `to` to f(i) or, if to.add is true, adds f(i). Does nothing if `to` is absent.
template <class S, class F>
void store_points(const Grad& to, F f) {
    if (to) store_points(to.view.count(), to.as<S>(), to.add, f);
}

// Returns how many of the first `count` numbers of an ascending list are below `value`.
HD std::int64_t count_below(const int* ascending, std::int64_t count, std::int64_t value) {
    std::int64_t low = 0, high = count;
    while (low < high) {
        const std::int64_t middle = (low + high) / 2;
        if (ascending[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Calls f(A()), where A is the C++ type of the numbers of `v`. `v` must not be bf16, because ops compute bf16 tensors
// in float.
template <class F>
void for_latent(const View& v, F f) {
    for_type(v.dtype, [&]<class S, class A>(S, A) { f(A()); });
}

// Calls f(lanes, row) for every row, where f is what make(A()) returns, and A the C++ type of `x`, as in for_latent().
template <class Make>
void for_latent_rows(const View& x, Make make) {
    for_latent(x, [&]<class A>(A) { for_each_row(x.rows(), make(A())); });
}
// Calls f(lanes, row) for `rows` rows, where f is what make(S(), A(), lanes) returns, S and A are the C++ types of `x`,
// as in for_type(), and `lanes` are those of in_packets().
template <class Make>
void for_packet_rows(const View& x, std::int64_t rows, Make make) {
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        for_each_row(rows, in_packets<S>([&](auto lanes) { return make(S(), A(), lanes); }));
    });
}

}  // namespace DEVICE
}  // namespace masquerade

#include "engine/ops/calls.h"
