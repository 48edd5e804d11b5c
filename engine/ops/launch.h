// SPDX-License-Identifier: MIT
// The one launch header. A row or point op is one .cpp file: g++ compiles it into namespace cpu, nvcc (-x cu) into
// namespace cuda. It writes a functor and hands it to for_each_row or for_each_point; types are chosen by for_type.
#pragma once
#include "engine/math/lanes.h"
#include "engine/ops/table.h"

#ifdef __CUDACC__
#define DEVICE cuda
#include "engine/ops/cuda/launch.cuh"
#else
#define DEVICE cpu
#include "engine/ops/cpu/parallel.h"
#endif

namespace masquerade {

// The storage type of a tensor and the type its arithmetic is done in.
template <class Storage, class Arithmetic>
struct Types {
    using S = Storage;
    using A = Arithmetic;
};

template <class F>
void for_type(DType type, F f) {
    switch (type) {
        case DType::f32: return f(Types<float, float>{});
        case DType::bf16: return f(Types<bfloat16, float>{});
#ifdef __CUDACC__
        default: throw Error(text("no CUDA form for ", name_of(type)));
#else
        case DType::f64: return f(Types<double, double>{});
        case DType::c128: return f(Types<complex, complex>{});
#endif
    }
}

namespace DEVICE {

#ifdef __CUDACC__
// f(lanes, row) for every row, a warp a row; f is a functor of HD operator().
template <class F>
void for_each_row(std::int64_t rows, F f) {
    launch_rows(rows, f);
}
template <class F>
void for_each_point(std::int64_t n, F f) {
    launch_points(n, f);
}
template <class A, class F>
void column_sums(std::int64_t rows, int columns, F term, A* to, bool add) {
    launch_column_sums(rows, columns, term, to, add);
}
#else
template <class F>
void for_each_row(std::int64_t rows, F f) {
    parallel_for(rows, 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; row++) f(OneLane{}, row);
    });
}
// f(i) for every element.
template <class F>
void for_each_point(std::int64_t n, F f) {
    parallel_for(n, 16384, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i++) f(i);
    });
}

// to[c] = the sum over rows n of term(n, c): rows in chunks of 64, then the chunks, both in order, whatever the threads.
template <class A, class F>
void column_sums(std::int64_t rows, int columns, F term, A* to, bool add) {
    constexpr int width = 64, chunk = 64;
    parallel_each((columns + width - 1) / width, [&](std::int64_t block) {
        int c0 = int(block) * width, c1 = c0 + width < columns ? c0 + width : columns;
        A total[width] = {};
        for (std::int64_t begin = 0; begin < rows; begin += chunk) {
            A part[width] = {};
            std::int64_t end = begin + chunk < rows ? begin + chunk : rows;
            for (std::int64_t n = begin; n < end; n++)
                for (int c = c0; c < c1; c++) part[c - c0] += term(n, c);
            for (int c = c0; c < c1; c++) total[c - c0] += part[c - c0];
        }
        for (int c = c0; c < c1; c++) put(to[c], total[c - c0], add);
    });
}
#endif

}  // namespace DEVICE
}  // namespace masquerade
