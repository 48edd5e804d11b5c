// SPDX-License-Identifier: MIT
// The inner part of the matrix product. gemm_kernels.cpp compiles it once for each instruction set, by including it
// into a namespace that has
//   lanes               floats in a vector register
//   tile_rows, vectors  the tile of C kept in registers is tile_rows x (vectors * lanes)
//   Vector              `lanes` floats
//   multiply_add        a b + c, for Vectors
// Blocks of A and B are packed so that the innermost loop reads both contiguously.
//   Goto & van de Geijn 2008, Anatomy of high-performance matrix multiplication
//
// All functions of this header are local to that namespace. They call only functions that are also local to it, and
// members of Epilogue, which gemm.h defines before the instruction set is changed. If they called a template of the
// standard library, the compiler would make a copy of the template here, for this instruction set, and the linker could
// choose this copy for the whole program.

constexpr std::int64_t tile_columns = vectors * lanes;
constexpr std::int64_t block_rows = 16 * tile_rows;  // rows of A packed together if A's columns are contiguous

#include "engine/ops/cpu/gemm_pack.h"

// The tile of C that tile() writes: its first element, the distance from one row to the next in floats, whether to add
// to the old C, and the bias of the tile's columns (null if there is none).
struct Place {
    float* c;
    std::int64_t row;
    bool add;
    const float* bias;
};

// Computes `rows` rows and `width` vectors of C from packed rows of A and a packed panel of B, whose numbers have type
// S. `across` selects one of the two layouts of a packed A (see pack_a()). Meanwhile, the memory that `soon` describes
// is prefetched.
template <int rows, int width, bool across, class S>
void tile(std::int64_t depth, const float* a, const void* panel, const Place& to, Walk& soon) {
    const S* b = static_cast<const S*>(panel);
    constexpr std::int64_t a_row = across ? 1 : row_along, a_step = across ? lanes : 1;
    float* const c = to.c;
    const std::int64_t c_row = to.row;
    Vector s[rows][width];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < width; j++) {
            s[i][j] = Vector{};
            __builtin_prefetch(c + i * c_row + j * lanes, 1);
        }
    auto step = [&]() __attribute__((always_inline)) {
        Vector v[width];
        load_row(v, b);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            Vector x = a[i * a_row] - Vector{};
#pragma GCC unroll 4
            for (int j = 0; j < width; j++) s[i][j] = multiply_add(x, v[j], s[i][j]);
        }
        a += a_step;
        b += tile_columns;
    };
    // With 16 lanes, this prefetches all of the next panel if it is of bf16 numbers. Tiles of more rows share the work.
    constexpr bool asks_more = rows <= 4 && sizeof(S) == 2 && lanes == 16;
    std::int64_t p = 0;
    Walk walk = soon;
    for (; p + 4 <= depth; p += 4) {
        ask(walk), step();
        if (asks_more) ask(walk);
        step();
        ask(walk), step();
        if (asks_more) ask(walk);
        step();
    }
    for (; p < depth; p++) step();
    soon = walk;
    if (to.add)
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int j = 0; j < width; j++) s[i][j] += load(c + i * c_row + j * lanes);
    if (to.bias)
#pragma GCC unroll 4
        for (int j = 0; j < width; j++) {
            Vector bias = load(to.bias + j * lanes);
#pragma GCC unroll 16
            for (int i = 0; i < rows; i++) s[i][j] += bias;
        }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < width; j++) store(c + i * c_row + j * lanes, s[i][j]);
}

using Tile = void (*)(std::int64_t, const float*, const void*, const Place&, Walk&);
template <bool across, class S, int... i>
Tile tile_of(std::int64_t rows, std::int64_t columns, std::integer_sequence<int, i...>) {
    static constexpr Tile table[] = {tile<i / vectors + 1, i % vectors + 1, across, S>...};
    return table[(rows - 1) * vectors + (columns - 1) / lanes];
}
template <class S>
Tile tile_of(bool across, std::int64_t rows, std::int64_t columns) {
    const auto sizes = std::make_integer_sequence<int, tile_rows * vectors>{};
    return across ? tile_of<true, S>(rows, columns, sizes) : tile_of<false, S>(rows, columns, sizes);
}

// fetch() copies rows of f32 or bf16 numbers to the rows of a tile of floats; deliver() copies them back, and rounds to
// bf16 if S is bf16.
template <class S>
void fetch(float* to, const S* from, std::int64_t row, std::int64_t rows, std::int64_t columns) {
    for (std::int64_t i = 0; i < rows; i++)
        for (std::int64_t j = 0; j < columns; j++) to[i * tile_columns + j] = widen(from[i * row + j]);
}
template <class S>
void deliver(S* to, const float* from, std::int64_t row, std::int64_t rows, std::int64_t columns) {
    for (std::int64_t i = 0; i < rows; i++)
        for (std::int64_t j = 0; j < columns; j++) narrow(to[i * row + j], from[i * tile_columns + j]);
}

// An area of C, at most one tile. Products are summed over the depth K block by block; `first` and `last` say whether
// the current block of K is the first one and whether it is the last one.
struct Part : Area {
    bool first, last;
};

void run_tile(const GemmProblem& g, const Part& at, std::int64_t depth, const float* a, const void* b, Walk& soon) {
    std::int64_t rows = at.m1 - at.m0, columns = at.n1 - at.n0;
    Tile run = g.packed_b && g.b.dtype == DType::bf16 ? tile_of<std::uint16_t>(lies_across(g.a), rows, columns)
                                                      : tile_of<float>(lies_across(g.a), rows, columns);
    bool add = !at.first || g.c.add, f32 = g.c.dtype == DType::f32;
    const float* bias = at.first && g.c.bias ? static_cast<const float*>(g.c.bias) + at.n0 : nullptr;
    std::int64_t in_c = at.m0 * g.c.row + at.n0, in_sums = at.m0 * g.sums_row + at.n0;
    if (f32 && columns % lanes == 0) return run(depth, a, b, {g.sums + in_sums, g.c.row, add, bias}, soon);

    // If the columns end inside a vector, or C is bfloat16, the part is first computed in a full tile of floats.
    float whole[tile_rows * tile_columns] = {}, whole_bias[tile_columns] = {};
    if (bias) fetch(whole_bias, bias, 0, 1, columns);
    if (add && (f32 || !at.first))
        fetch(whole, g.sums + in_sums, g.sums_row, rows, columns);
    else if (add)
        fetch(whole, static_cast<const std::uint16_t*>(g.c.data) + in_c, g.c.row, rows, columns);
    run(depth, a, b, {whole, tile_columns, add, bias ? whole_bias : nullptr}, soon);
    if (f32 || !at.last)
        deliver(g.sums + in_sums, whole, g.sums_row, rows, columns);
    else
        deliver(static_cast<std::uint16_t*>(g.c.data) + in_c, whole, g.c.row, rows, columns);
}

inline std::int64_t panels_of(std::int64_t columns) { return (columns + tile_columns - 1) / tile_columns; }
// Number of floats that a packed block of A needs, in either layout.
constexpr std::int64_t a_room = block_rows / tile_rows * panel_across;
static_assert(a_room >= tile_rows * row_along);

// Returns the number of columns of B that are packed together, in whole panels of tile_columns columns. The panels fill
// at most half of the second-level cache, except that there is always at least one panel.
std::int64_t block_columns(std::int64_t columns, std::int64_t cache) {
    std::int64_t most = cache / 2 / (b_panel * std::int64_t(sizeof(float)));
    return smaller(panels_of(columns), most > 1 ? most : 1) * tile_columns;
}

// The layout of all of B: blocks of gemm_depth rows, one after another, each in panels of as many rows.
std::int64_t packed_size(std::int64_t k, std::int64_t n) { return k * panels_of(n) * tile_columns; }
void pack_all(const Factor& b, std::int64_t k0, std::int64_t k1, std::int64_t n, void* to) {
    const std::int64_t depth = k1 - k0, panel = depth * tile_columns;
    if (b.dtype == DType::f32) return pack_b(static_cast<float*>(to) + packed_size(k0, n), panel, b, {k0, k1, 0, n});
    std::uint16_t* folded = static_cast<std::uint16_t*>(to) + packed_size(k0, n);
    float floats[gemm_depth * tile_columns];
    for (std::int64_t n0 = 0; n0 < n; n0 += tile_columns, folded += panel) {
        pack_b(floats, panel, b, {k0, k1, n0, smaller(n0 + tile_columns, n)});
        fold(folded, floats, depth);
    }
}

// Number of floats of tile_rows packed rows of A: if they lie along K, and in either layout.
constexpr std::int64_t tile_along = tile_rows * row_along;
constexpr std::int64_t a_tile = panel_across > tile_along ? panel_across : tile_along;

// Returns the number of rows of A that are packed together if all of B is packed. They fill at most half of the
// second-level cache, except that there is always at least one tile.
std::int64_t block_rows_of_packed(std::int64_t rows, std::int64_t cache) {
    const std::int64_t most = cache / 2 / (a_tile * std::int64_t(sizeof(float))) * tile_rows;
    return smaller(rows, most > tile_rows ? most : tile_rows);
}

// Computes an area of C if all of B is packed; the columns of the area begin with a panel of B. For each panel, all
// rows of A that are packed are multiplied by it. Few rows of A are then enough to hide that the panels come from
// memory: while a panel is in a cache, the next one is prefetched.
void block_of_packed(const GemmProblem& g, const Area& area, float* packed_a) {
    const bool across = lies_across(g.a);
    const std::int64_t size = g.b.dtype == DType::f32 ? 4 : 2;
    const std::int64_t height = block_rows_of_packed(area.m1 - area.m0, g.cache);
    for (std::int64_t m0 = area.m0; m0 < area.m1; m0 += height) {
        const std::int64_t m1 = smaller(m0 + height, area.m1);
        std::int64_t k0 = 0;
        do {  // runs once even if K = 0, because C must be written
            const std::int64_t k1 = smaller(k0 + gemm_depth, g.k), panel = (k1 - k0) * tile_columns;
            pack_a(packed_a, g.a, g.m, {m0, m1, k0, k1});
            const char* b = static_cast<const char*>(g.packed_b) + (packed_size(k0, g.n) + area.n0 * (k1 - k0)) * size;
            const bool done = k1 == g.k && g.c.then;
            for (std::int64_t n = area.n0; n < area.n1; n += tile_columns, b += panel * size) {
                const std::int64_t n1 = smaller(n + tile_columns, area.n1);
                Walk soon =
                    n1 < area.n1 ? walk_over({b + panel * size, g.b.dtype, panel, 1}, {0, 1, 0, panel}) : Walk{};
                Walk beside = done && g.c.then.beside.data ? walk_over(g.c.then.beside, {m0, m1, n, n1}) : Walk{};
                for (std::int64_t m = m0; m < m1; m += tile_rows) {
                    const Area part{m, smaller(m + tile_rows, m1), n, n1};
                    run_tile(g, {part, k0 == 0, k1 == g.k}, k1 - k0,
                             packed_a + (across ? (m - m0) / tile_rows * panel_across : (m - m0) * row_along), b,
                             beside.rows > 0 ? beside : soon);
                    if (done) g.c.then(part);
                }
            }
            k0 = k1;
        } while (k0 < g.k);
    }
}

// Returns the number of floats that block() needs as scratch for an area of this size.
std::int64_t scratch(const GemmProblem& g, std::int64_t rows, std::int64_t columns) {
    if (!g.packed_b) return a_room + block_columns(columns, g.cache) / tile_columns * b_panel;
    return (block_rows_of_packed(rows, g.cache) + tile_rows - 1) / tile_rows * a_tile;
}

// Computes an area of C. `scratch` has room for the packed panels of B, followed by the packed block of A.
void block(const GemmProblem& g, const Area& area, float* scratch) {
    if (g.packed_b) return block_of_packed(g, area, scratch);
    const std::int64_t width = block_columns(area.n1 - area.n0, g.cache);
    float *const packed_b = scratch, *const packed_a = scratch + width / tile_columns * b_panel;
    // `height` is the number of rows of A that are packed together. Usually these are the rows of one tile, because
    // they fit into the first-level cache. If the columns of A are contiguous, more rows are packed, because longer
    // contiguous pieces are read faster.
    const bool across = lies_across(g.a);
    const std::int64_t height = across ? block_rows : tile_rows;
    for (std::int64_t n0 = area.n0; n0 < area.n1; n0 += width) {
        std::int64_t n1 = smaller(n0 + width, area.n1), n2 = smaller(n1 + width, area.n1), k0 = 0;
        do {  // runs once even if K = 0, because C must be written
            std::int64_t k1 = smaller(k0 + gemm_depth, g.k), k2 = smaller(k1 + gemm_depth, g.k);
            pack_b(packed_b, b_panel, g.b, {k0, k1, n0, n1});
            Walk soon_b =
                k1 < g.k ? walk_over(g.b, {k1, k2, n0, n1}) : walk_over(g.b, {0, smaller(gemm_depth, g.k), n1, n2});
            for (std::int64_t m0 = area.m0; m0 < area.m1; m0 += height) {
                std::int64_t m1 = smaller(m0 + height, area.m1), m2 = smaller(m1 + height, area.m1);
                pack_a(packed_a, g.a, g.m, {m0, m1, k0, k1});
                Walk soon_a = m1 < area.m1 ? walk_over(g.a, {m1, m2, k0, k1})
                                           : walk_over(g.a, {area.m0, smaller(area.m0 + height, area.m1), k1, k2});
                const bool done = k1 == g.k && g.c.then;
                Walk beside = done && g.c.then.beside.data ? walk_over(g.c.then.beside, {m0, m1, n0, n1}) : Walk{};
                for (std::int64_t m = m0; m < m1; m += tile_rows)
                    for (std::int64_t n = n0; n < n1; n += tile_columns)
                        run_tile(
                            g, {{m, smaller(m + tile_rows, m1), n, smaller(n + tile_columns, n1)}, k0 == 0, k1 == g.k},
                            k1 - k0, packed_a + (m - m0) / tile_rows * panel_across,
                            packed_b + (n - n0) / tile_columns * b_panel,
                            beside.rows > 0   ? beside
                            : soon_a.rows > 0 ? soon_a
                                              : soon_b);
                if (done) g.c.then({m0, m1, n0, n1});
            }
            k0 = k1;
        } while (k0 < g.k);
    }
}
