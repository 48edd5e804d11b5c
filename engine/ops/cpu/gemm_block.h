// SPDX-License-Identifier: MIT
// The inner part of the matrix product, compiled once for each instruction set by a file that first defines,
// in its anonymous namespace:
//   lanes             floats in a vector register
//   tile_rows         rows of the tile of C kept in registers, at most `lanes`; it is two vectors wide
//   Vector            `lanes` floats
//   multiply_add      a b + c, for Vectors
// A is packed into panels of tile_rows rows, B into panels of tile_columns columns, so that the innermost
// loop reads both in one straight line.   Goto & van de Geijn 2008, Anatomy of high-performance matrix
// multiplication
//
// Everything here is local to the file that includes it, and calls nothing that is not: a function that two
// files share, a template of the standard library say, could be linked in the form of a machine that this one
// is not.

namespace masquerade {
namespace {

constexpr int vectors = 2;
constexpr std::int64_t tile_columns = vectors * lanes;
constexpr std::int64_t block_rows = 16 * tile_rows;        // of A, packed: stays in the second-level cache
constexpr std::int64_t block_columns = 32 * tile_columns;  // of B, packed
static_assert(tile_rows <= lanes, "pack_turned writes one vector for a row of a panel of A");

typedef float LooseVector __attribute__((vector_size(4 * lanes), aligned(4), may_alias));
typedef std::int32_t Indices __attribute__((vector_size(4 * lanes)));
typedef std::uint32_t Words __attribute__((vector_size(4 * lanes)));
typedef std::uint16_t Halves __attribute__((vector_size(2 * lanes), aligned(2), may_alias));

inline std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// bfloat16 lives here as its 16 bits.
inline float widen(float x) { return x; }
inline float widen(std::uint16_t x) { return __builtin_bit_cast(float, std::uint32_t(x) << 16); }
inline Vector load(const float* p) { return Vector(*reinterpret_cast<const LooseVector*>(p)); }
inline Vector load(const std::uint16_t* p) {
    return Vector(__builtin_convertvector(*reinterpret_cast<const Halves*>(p), Words) << 16);
}
inline void store(float* p, Vector v) { *reinterpret_cast<LooseVector*>(p) = v; }
// Rounded to nearest even; NaN stays NaN.
inline void narrow(float& to, float x) { to = x; }
inline void narrow(std::uint16_t& to, float x) {
    std::uint32_t u = __builtin_bit_cast(std::uint32_t, x);
    std::uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16, quiet = (u >> 16) | 0x40u;
    to = std::uint16_t((u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

// The shuffles of a transpose, each one instruction; a pick names element e of its result: below `lanes` one
// of a, from there on one of b.
//
// One half of every four floats, a's and b's interleaved by units: a0 b0 a1 b1 or a0 a1 b0 b1.
template <int unit, int half>
struct Zip {
    static constexpr int pick(int e) {
        int q = e % 4, from_b = unit == 1 ? q % 2 : q / 2, place = unit == 1 ? q / 2 : q % 2;
        return from_b * lanes + e - q + 2 * half + place;
    }
};
// The even, or odd, fours of a, then of b.
template <int odd>
struct Fours {
    static constexpr int pick(int e) {
        int four = e / 4, half = lanes / 8 > 0 ? lanes / 8 : 1;
        return four / half * lanes + 4 * (2 * (four % half) + odd) + e % 4;
    }
};
template <class Shuffle, int... e>
inline Vector shuffle(Vector a, Vector b, std::integer_sequence<int, e...>) {
    return __builtin_shuffle(a, b, Indices{Shuffle::pick(e)...});
}
template <class Shuffle>
inline Vector shuffle(Vector a, Vector b) {
    return shuffle<Shuffle>(a, b, std::make_integer_sequence<int, lanes>{});
}
inline void transpose(Vector (&v)[lanes]) {
    Vector t[lanes];
#pragma GCC unroll 16
    for (int i = 0; i < lanes; i += 2) {
        t[i] = shuffle<Zip<1, 0>>(v[i], v[i + 1]);
        t[i + 1] = shuffle<Zip<1, 1>>(v[i], v[i + 1]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < lanes; i += 4)  // after this v[i + j] holds columns j, 4 + j, ... of rows i to i + 3
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            v[i + 2 * j] = shuffle<Zip<2, 0>>(t[i + j], t[i + j + 2]);
            v[i + 2 * j + 1] = shuffle<Zip<2, 1>>(t[i + j], t[i + j + 2]);
        }
#pragma GCC unroll 16
    for (int fours = lanes / 4; fours > 1; fours /= 2) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes / 2; i++) {
            int from = 2 * i - i % 4;
            t[i] = shuffle<Fours<0>>(v[from], v[from + 4]);
            t[lanes / 2 + i] = shuffle<Fours<1>>(v[from], v[from + 4]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < lanes; i++) v[i] = t[i];
    }
}

// Panels of `width` rows or columns: to[panel][p * width + r] = from[r * across + p * along]. What lies past
// `count` is zero. A store may run past the row it fills: the next one puts that right, and a panel has room
// behind its end.
template <int width, class S>
void pack_turned(float* to, const S* from, std::int64_t across, std::int64_t count, std::int64_t depth) {
    std::int64_t done = 0;
    for (; done + lanes <= depth; done += lanes)
        for (int r = 0; r < width; r += lanes) {
            Vector v[lanes];
#pragma GCC unroll 16
            for (int i = 0; i < lanes; i++)
                v[i] = r + i < count ? load(from + (r + i) * across + done) : Vector{};
            transpose(v);
#pragma GCC unroll 16
            for (int i = 0; i < lanes; i++) store(to + (done + i) * width + r, v[i]);
        }
    for (; done < depth; done++)
        for (int r = 0; r < width; r++)
            to[done * width + r] = r < count ? widen(from[r * across + done]) : 0.0f;
}
template <int width, class S>
void pack_straight(float* to, const S* from, std::int64_t count) {
    constexpr int whole = (width + lanes - 1) / lanes * lanes;
    if (count >= whole)
        for (int r = 0; r < width; r += lanes) store(to + r, load(from + r));
    else
        for (int r = 0; r < width; r++) to[r] = r < count ? widen(from[r]) : 0.0f;
}
template <int width, class S>
void pack_panels(float* to, std::int64_t panel, const S* from, std::int64_t across, std::int64_t along,
                 std::int64_t count, std::int64_t depth) {
    if (along == 1) {
        for (std::int64_t r = 0; r < count; r += width, to += panel)
            pack_turned<width>(to, from + r * across, across, count - r, depth);
    } else if (across == 1) {
        for (std::int64_t p = 0; p < depth; p++)  // whole rows of the source, for the sake of its pages
            for (std::int64_t r = 0; r < count; r += width)
                pack_straight<width>(to + r / width * panel + p * width, from + p * along + r, count - r);
    } else {
        for (std::int64_t r0 = 0; r0 < count; r0 += width, to += panel)
            for (std::int64_t p = 0; p < depth; p++)
                for (std::int64_t r = r0; r < r0 + width; r++)
                    to[p * width + r - r0] = r < count ? widen(from[r * across + p * along]) : 0.0f;
    }
}
template <int width>
void pack(float* to, std::int64_t panel, const Factor& f, std::int64_t across, std::int64_t along,
          std::int64_t offset, std::int64_t count, std::int64_t depth) {
    if (depth == 0) return;
    if (f.dtype == DType::f32)
        pack_panels<width>(to, panel, static_cast<const float*>(f.data) + offset, across, along, count,
                           depth);
    else
        pack_panels<width>(to, panel, static_cast<const std::uint16_t*>(f.data) + offset, across, along,
                           count, depth);
}

// Where a tile of C goes: first and last say which block of K this is.
struct Place {
    const GemmProblem& problem;
    std::int64_t row, column, columns;
    bool first, last;
};

// The row of a tile that is narrower than two vectors, or of bfloat16.
template <class S>
void finish_row(const Place& at, std::int64_t row, const float* sum) {
    const GemmProblem& g = at.problem;
    S* c = static_cast<S*>(g.c.data) + row * g.c.row + at.column;
    float* sums = at.first && at.last ? nullptr : g.sums + row * g.sums_row + at.column;
    const float* bias = at.first && g.c.bias ? g.c.bias + at.column : nullptr;
    bool add = at.first && g.c.add;
    for (std::int64_t j = 0; j < at.columns; j++) {
        float x = sum[j];
        if (!at.first) x += sums[j];
        if (add) x += widen(c[j]);
        if (bias) x += bias[j];
        if (at.last) narrow(c[j], x);
        else sums[j] = x;
    }
}

// `rows` rows of C from one panel of A and one of B.
template <int rows>
void tile(std::int64_t depth, const float* a, const float* b, const Place& at) {
    const GemmProblem& g = at.problem;
    Vector s[rows][vectors];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) s[i][j] = Vector{};
    float* c = static_cast<float*>(g.c.data) + at.row * g.c.row + at.column;
    bool add = !at.first || g.c.add, whole = g.c.dtype == DType::f32 && at.columns == tile_columns;
    if (add && whole)  // what will be added to, asked for early
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < vectors; j++) __builtin_prefetch(c + i * g.c.row + j * lanes, 1);
#pragma GCC unroll 4
    for (std::int64_t p = 0; p < depth; p++) {
        Vector b0 = *reinterpret_cast<const Vector*>(b), b1 = *reinterpret_cast<const Vector*>(b + lanes);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            Vector x = a[i] - Vector{};
            s[i][0] = multiply_add(x, b0, s[i][0]);
            s[i][1] = multiply_add(x, b1, s[i][1]);
        }
        a += tile_rows;
        b += tile_columns;
    }
    if (whole) {
        bool biased = at.first && g.c.bias;
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < vectors; j++) {
                if (add) s[i][j] += load(c + i * g.c.row + j * lanes);
                if (biased) s[i][j] += load(g.c.bias + at.column + j * lanes);
                store(c + i * g.c.row + j * lanes, s[i][j]);
            }
    } else {
        float sum[rows][tile_columns];
        __builtin_memcpy(sum, s, sizeof s);
        for (int i = 0; i < rows; i++)
            if (g.c.dtype == DType::f32) finish_row<float>(at, at.row + i, sum[i]);
            else finish_row<std::uint16_t>(at, at.row + i, sum[i]);
    }
}

using Tile = void (*)(std::int64_t, const float*, const float*, const Place&);
template <int... rows>
constexpr Tile tile_of_height(std::int64_t height, std::integer_sequence<int, rows...>) {
    constexpr Tile table[] = {tile<rows + 1>...};
    return table[height - 1];
}

// Floats of a panel: of A with room behind it for one vector, of B, whose rows are whole vectors, without.
constexpr std::int64_t a_panel = (tile_rows * gemm_depth + 2 * lanes - 1) / lanes * lanes;
constexpr std::int64_t b_panel = tile_columns * gemm_depth;

inline std::int64_t panels(std::int64_t size, std::int64_t unit) { return (size + unit - 1) / unit; }

std::int64_t scratch(std::int64_t m, std::int64_t n) {
    return panels(smaller(m, block_rows), tile_rows) * a_panel +
           panels(smaller(n, block_columns), tile_columns) * b_panel;
}

void block(const GemmProblem& g, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
           std::int64_t n_end, float* packed_b) {
    float* packed_a = packed_b + panels(smaller(n_end - n_begin, block_columns), tile_columns) * b_panel;
    for (std::int64_t n0 = n_begin; n0 < n_end; n0 += block_columns) {
        std::int64_t n1 = smaller(n0 + block_columns, n_end);
        std::int64_t k0 = 0;
        do {  // once even where K = 0
            std::int64_t depth = smaller(g.k - k0, gemm_depth);
            pack<tile_columns>(packed_b, b_panel, g.b, g.b.column, g.b.row, k0 * g.b.row + n0 * g.b.column,
                               n1 - n0, depth);
            for (std::int64_t m0 = m_begin; m0 < m_end; m0 += block_rows) {
                std::int64_t m1 = smaller(m0 + block_rows, m_end);
                pack<tile_rows>(packed_a, a_panel, g.a, g.a.row, g.a.column, m0 * g.a.row + k0 * g.a.column,
                                m1 - m0, depth);
                for (std::int64_t n = n0; n < n1; n += tile_columns)
                    for (std::int64_t m = m0; m < m1; m += tile_rows) {
                        Place at{g, m, n, smaller(tile_columns, n1 - n), k0 == 0, k0 + depth == g.k};
                        Tile run = tile_of_height(smaller(tile_rows, m1 - m),
                                                  std::make_integer_sequence<int, tile_rows>{});
                        run(depth, packed_a + (m - m0) / tile_rows * a_panel,
                            packed_b + (n - n0) / tile_columns * b_panel, at);
                    }
            }
            k0 += depth;
        } while (k0 < g.k);
    }
}

}  // namespace
}  // namespace masquerade
