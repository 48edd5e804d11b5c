// SPDX-License-Identifier: MIT
// Packs the factors of a matrix product. gemm_block.h includes this file, and lists the names (lanes, Vector ...) that
// must be defined before.

#include "engine/ops/cpu/vector_types.h"

inline std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// In this file, a bfloat16 is represented by its 16 bits.
inline float widen(float x) { return x; }
inline float widen(std::uint16_t x) { return __builtin_bit_cast(float, std::uint32_t(x) << 16); }
inline Vector load(const float* p) { return Vector(*reinterpret_cast<const LooseVector*>(p)); }
inline Vector load(const std::uint16_t* p) {
    return Vector(__builtin_convertvector(*reinterpret_cast<const Halves*>(p), Bits) << 16);
}
inline void store(float* p, Vector v) { *reinterpret_cast<LooseVector*>(p) = v; }
// Converts x to the type of `to`. A conversion to bfloat16 rounds to the nearest number, ties to even; NaN stays NaN.
inline void narrow(float& to, float x) { to = x; }
inline void narrow(std::uint16_t& to, float x) {
    std::uint32_t u = __builtin_bit_cast(std::uint32_t, x);
    std::uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16, quiet = (u >> 16) | 0x40u;
    to = std::uint16_t((u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

template <class S>
void copy_row(float* to, const S* from, std::int64_t count) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) store(to + i, load(from + i));
    for (; i < count; i++) to[i] = widen(from[i]);
}

// The two layouts of a packed block of A. Its rows are counted by i, and its columns, which run along K, by p.
//     if A is stored by columns (lies_across()): panels of tile_rows rows;
//         element (i, p) of a panel is at to[panel][p * lanes + i]
//     otherwise: row by row; element (i, p) is at to[i * row_along + p]
// tile() can use either layout, because it reads single elements. The strides are longer than the data, so that the
// rows fall into different sets of the first-level cache.
constexpr std::int64_t row_along = gemm_depth + lanes, panel_across = (gemm_depth + 1) * lanes;
static_assert(tile_rows <= lanes, "a row of a panel of A is one vector");

inline bool lies_across(const Factor& f) { return f.column != 1; }

// Packs `rows` rows and `depth` columns of A. `readable` is the number of rows that A has from `from` on. The last
// panel may read more than `rows` rows, because it reads whole vectors, but never more than `readable` rows.
template <class S>
void pack_a(float* to, const S* from, const Factor& a, std::int64_t rows, std::int64_t readable, std::int64_t depth) {
    if (lies_across(a)) {
        for (std::int64_t p = 0; p < depth; p++, from += a.column, to += lanes) {
            // A is read in the order in which it is stored, so that few memory pages are read at a time.
            float* panel = to;
            for (std::int64_t i = 0; i < rows; i += tile_rows, panel += panel_across)
                if (i + lanes <= readable)
                    store(panel, load(from + i));
                else
                    copy_row(panel, from + i, smaller(tile_rows, rows - i));
        }
    } else {
        for (std::int64_t i = 0; i < rows; i++) copy_row(to + i * row_along, from + i * a.row, depth);
    }
}

constexpr std::int64_t b_panel = gemm_depth * tile_columns + lanes;
// A block of B becomes panels of tile_columns columns: element (p, j) of a panel is at
// to[panel][p * tile_columns + j]. Numbers past the last column are 0. turn_panel() packs one panel if the columns
// of B are contiguous. The panels are `panel` floats apart: b_panel for one block of B, and for all of B (pack_all()),
// the number of floats of a panel.
template <class S>
void turn_panel(float* to, const S* from, std::int64_t across, std::int64_t columns, std::int64_t depth) {
    std::int64_t done = 0;
    for (; done + lanes <= depth; done += lanes)
        for (std::int64_t j = 0; j < tile_columns; j += lanes) {
            Vector v[lanes];
#pragma GCC unroll 16
            for (int i = 0; i < lanes; i++) v[i] = j + i < columns ? load(from + (j + i) * across + done) : Vector{};
            transpose(v);
#pragma GCC unroll 16
            for (int i = 0; i < lanes; i++) store(to + (done + i) * tile_columns + j, v[i]);
        }
    for (; done < depth; done++)
        for (std::int64_t j = 0; j < tile_columns; j++)
            to[done * tile_columns + j] = j < columns ? widen(from[j * across + done]) : 0.0f;
}
template <class S>
void pack_b(float* to, std::int64_t panel, const S* from, const Factor& b, std::int64_t depth, std::int64_t columns) {
    if (lies_across(b)) {
        for (std::int64_t j = 0; j < columns; j += tile_columns)
            turn_panel(to + j / tile_columns * panel, from + j * b.column, b.column, columns - j, depth);
        return;
    }
    const std::int64_t whole = columns / tile_columns * tile_columns;
    for (std::int64_t p = 0; p < depth; p++, from += b.row, to += tile_columns) {
        // B is read row by row, as it is stored, so that few memory pages are read at a time.
        for (std::int64_t j = 0; j < whole; j += tile_columns)
#pragma GCC unroll 4
            for (int i = 0; i < tile_columns; i += lanes) store(to + j / tile_columns * panel + i, load(from + j + i));
        for (std::int64_t i = 0; whole < columns && i < tile_columns; i++)
            to[whole / tile_columns * panel + i] = whole + i < columns ? widen(from[whole + i]) : 0.0f;
    }
}

// `at` is the block to pack: rows [m0, m1) and columns [n0, n1) of the factor. The columns of A and the rows of B run
// along K. A has m rows.
void pack_a(float* to, const Factor& a, std::int64_t m, const Area& at) {
    if (at.n0 == at.n1) return;
    const std::int64_t first = at.m0 * a.row + at.n0 * a.column, rows = at.m1 - at.m0, depth = at.n1 - at.n0;
    if (a.dtype == DType::f32)
        pack_a(to, static_cast<const float*>(a.data) + first, a, rows, m - at.m0, depth);
    else
        pack_a(to, static_cast<const std::uint16_t*>(a.data) + first, a, rows, m - at.m0, depth);
}
void pack_b(float* to, std::int64_t panel, const Factor& b, const Area& at) {
    if (at.m0 == at.m1) return;
    const std::int64_t first = at.m0 * b.row + at.n0 * b.column, depth = at.m1 - at.m0, columns = at.n1 - at.n0;
    if (b.dtype == DType::f32)
        pack_b(to, panel, static_cast<const float*>(b.data) + first, b, depth, columns);
    else
        pack_b(to, panel, static_cast<const std::uint16_t*>(b.data) + first, b, depth, columns);
}

// If all of B is packed once, the copy has the type of B. A row of a panel of bf16 numbers is then a vector of words.
// Word j has the number of column j in its lower half, and the number of column j + lanes in its upper half. load_row()
// returns a row of a packed panel as `width` vectors. fold() makes a panel of bf16 numbers from the panel of the same
// numbers as floats.
static_assert(vectors == 2, "a word has a number of each of the two vectors of a row");
template <int width>
inline void load_row(Vector (&row)[width], const float* panel) {
#pragma GCC unroll 4
    for (int j = 0; j < width; j++) row[j] = *reinterpret_cast<const Vector*>(panel + j * lanes);
}
template <int width>
inline void load_row(Vector (&row)[width], const std::uint16_t* panel) {
    const Bits words = Bits(load(reinterpret_cast<const float*>(panel)));
    row[0] = Vector(words << 16);
    if (width == 2) row[width - 1] = Vector(words & 0xffff0000u);
}
void fold(std::uint16_t* to, const float* from, std::int64_t rows) {
    for (std::int64_t p = 0; p < rows; p++, from += tile_columns, to += tile_columns)
        store(reinterpret_cast<float*>(to), Vector(Bits(load(from)) >> 16 | (Bits(load(from + lanes)) & 0xffff0000u)));
}

// Describes memory that will be read next, for example by packing. While a tile is computed, the cache lines of this
// memory are prefetched one by one, so that they are in the second-level cache when they are read.
struct Walk {
    const char *line = nullptr, *row_end = nullptr;
    // length: bytes of a row. stride: bytes from one row to the next. rows: number of rows that are left.
    std::int64_t length = 0, stride = 0, rows = 0;
};

// Prefetches the next cache line of the memory that `walk` describes.
inline void ask(Walk& walk) {
    if (walk.rows <= 0) return;
    __builtin_prefetch(walk.line, 0, 2);
    walk.line += 64;
    if (walk.line < walk.row_end) return;
    walk.row_end += walk.stride;
    walk.line = walk.row_end - walk.length;
    walk.rows--;
}

// Returns a Walk over an area of f, in the direction in which f is contiguous.
inline Walk walk_over(const Factor& f, const Area& at) {
    const std::int64_t rows = at.m1 - at.m0, columns = at.n1 - at.n0, size = f.dtype == DType::f32 ? 4 : 2;
    if (rows <= 0 || columns <= 0) return {};
    const char* first = static_cast<const char*>(f.data) + (at.m0 * f.row + at.n0 * f.column) * size;
    const bool along = f.column == 1;
    const std::int64_t length = (along ? columns : rows) * size, stride = (along ? f.row : f.column) * size;
    return {first, first + length, length, stride, along ? rows : columns};
}
