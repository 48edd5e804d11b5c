// SPDX-License-Identifier: MIT
// The matrix product of two bf16 factors with bf16 instructions (gemm_bf16.h): how it is cut into parts, and which
// thread computes which part of C.
#include "engine/ops/cpu/gemm_bf16.h"

#include "engine/ops/cpu/gemm_kernel.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/cpu/workspace.h"

#include <algorithm>
#include <cstring>

namespace masquerade {
namespace {

// Sizes that fit into the caches of a core. First-level cache: 32 rows of A with left_depth numbers each (40 KiB).
// Second-level cache: right_room packed numbers of B (1 MiB), or sums_room float sums of C (1.2 MiB).
constexpr std::int64_t left_depth = 640, right_room = 512 * 1024, sums_room = 300 * 1024;
constexpr std::int64_t slab_columns = 512;  // columns of a slab (packed part of B) whose depth is less than K

std::int64_t parts(std::int64_t size, std::int64_t most) { return (size + most - 1) / most; }
std::int64_t whole(std::int64_t size, std::int64_t unit) { return parts(size, unit) * unit; }
// Cuts `size` into equal parts, of which the last may be smaller, and returns the size of a part. This size is a
// multiple of 32, and at most `most`. `most` must be a multiple of 32.
std::int64_t even_part(std::int64_t size, std::int64_t most) { return whole(parts(size, parts(size, most)), 32); }

struct Range {
    std::int64_t begin, end;
    std::int64_t size() const { return end - begin; }
    Range cut(std::int64_t from, std::int64_t length) const { return {from, std::min(end, from + length)}; }
};

struct Problem {
    const Bf16Form& form;
    std::int64_t m, n, k;
    Factor a, b;
    Product c;
    const std::uint16_t* packed_b;  // all of B, packed in panels that are whole(k, 32) deep; null: Part packs B
};

struct Scratch {};

// The part of C that one thread computes. The thread packs B in slabs of depth_ rows and width_ columns, unless all of
// B is packed. For each slab, the thread loops over the rows of A, 32 at a time, and over parts of the slab's depth,
// each at most left_depth deep. Between two parts of the depth, the sums of the 32 rows are stored in `waiting_`.
// Between two slabs for the same columns, the sums of all height_ rows are stored in `sums_`.
class Part {
  public:
    Part(const Problem& problem, Range rows, Range columns) : p_(problem), rows_(rows), columns_(columns) {
        width_ = whole(columns.size(), 32), depth_ = whole(p_.k, 32), height_ = whole(rows.size(), 32);
        if (p_.a.column != 1 && depth_ > left_depth) {
            // A is stored transposed. Packing 32 rows of A reads 64 bytes of each stored row, and the next 32 rows of A
            // are in the following 64 bytes. The slab is so small that these bytes are still in the cache when they are
            // packed.
            depth_ = even_part(p_.k, left_depth);
            width_ = even_part(columns.size(), slab_columns);
        } else if (depth_ * slab_columns <= right_room) {
            width_ = even_part(columns.size(), right_room / depth_ / 32 * 32);
        } else if (depth_ * width_ > right_room) {
            width_ = even_part(columns.size(), slab_columns);
            depth_ = even_part(p_.k, right_room / width_ / 32 * 32);
        }
        if (depth_ < p_.k) height_ = even_part(rows.size(), sums_room / width_ / 32 * 32);
        part_ = even_part(std::min(depth_, p_.k), left_depth);
        panel_ = 32 * (p_.packed_b ? whole(p_.k, 32) : depth_);

        std::int64_t waiting = part_ < depth_ ? 32 * width_ : 0, sums = depth_ < p_.k ? height_ * width_ : 0;
        std::int64_t left = 32 * part_, right = p_.packed_b ? 0 : depth_ * width_;
        float* room = workspace<Scratch>(2 * 1024 + waiting + sums + (left + right) / 2);
        block_[0] = room, block_[1] = room + 1024;
        waiting_ = room + 2048, sums_ = waiting_ + waiting;
        left_ = reinterpret_cast<std::uint16_t*>(sums_ + sums), right_ = left_ + left;
    }

    void run() {
        p_.form.begin();
        for (std::int64_t n = columns_.begin; n < columns_.end; n += width_)
            for (std::int64_t m = rows_.begin; m < rows_.end; m += height_)
                for (std::int64_t k = 0; k < p_.k; k += depth_)
                    multiply_slab(rows_.cut(m, height_), columns_.cut(n, width_), Range{0, p_.k}.cut(k, depth_));
        if (unfinished_) finish_bf16_block(*unfinished_);
        p_.form.end();
    }

  private:
    void multiply_slab(Range rows, Range columns, Range depth) {
        const std::uint16_t* right = right_;
        if (p_.packed_b)
            right = p_.packed_b + columns.begin / 32 * panel_ + 32 * depth.begin;
        else
            pack_bf16_right(right_, panel_, p_.b, {depth.begin, depth.end, columns.begin, columns.end});
        for (std::int64_t m = rows.begin; m < rows.end; m += 32)
            for (std::int64_t k = depth.begin; k < depth.end; k += part_) {
                Range now = depth.cut(k, part_);
                float* sums = sums_ + (m - rows.begin) * width_;
                multiply_rows(rows.cut(m, 32), columns, now, right + 32 * (k - depth.begin),
                              now.begin == depth.begin ? sums : waiting_, now.end == depth.end ? sums : waiting_);
            }
    }

    // Computes a row of blocks of C, for one part of K. The sums begin with the sums over the earlier parts of K, which
    // are read from `start`. In the first part of K, they begin with the old C (if `add` is set) plus the bias or, if C
    // is bf16, with 0. The new sums are written to `end` or, in the last part of K, to C.
    void multiply_rows(Range rows, Range columns, Range depth, const std::uint16_t* right, float* start, float* end) {
        const auto* left =
            static_cast<const std::uint16_t*>(p_.a.data) + rows.begin * p_.a.row + depth.begin * p_.a.column;
        std::int64_t left_row = 2 * p_.a.row;
        if (!serves_unpacked(left, rows, depth)) {
            pack_bf16_left(left_, part_, p_.a, {rows.begin, rows.end, depth.begin, depth.end});
            left = left_, left_row = 2 * part_;
        }
        for (std::int64_t column = columns.begin; column < columns.end; column += 32) {
            Bf16Place at{rows.begin, column, rows.size(), columns.cut(column, 32).size()};
            Bf16Block block{parts(depth.size(), 32),
                            int(at.rows),
                            at.columns > 16 ? 2 : 1,
                            left,
                            left_row,
                            right,
                            start,
                            128,
                            end,
                            128,
                            unfinished_};
            multiply_block(block, at, depth.begin == 0, depth.end == p_.k);
            right += panel_, start += 1024, end += 1024;
        }
        if (!p_.c.then || depth.end < p_.k) return;
        if (unfinished_) finish_bf16_block(*unfinished_);
        unfinished_ = nullptr;
        p_.c.then({rows.begin, rows.end, columns.begin, columns.end});
    }

    void multiply_block(Bf16Block& block, const Bf16Place& at, bool first, bool last) {
        const Product& c = p_.c;
        float *room = block_[turn_], *in_place = nullptr;
        if (c.dtype == DType::f32 && at.rows == 32 && at.columns == 32)
            in_place = static_cast<float*>(c.data) + at.row * c.row + at.column;
        if (first && (c.dtype != DType::f32 || (!c.add && !c.bias))) {
            block.start = nullptr;
        } else if (first && !c.add && at.columns == 32) {
            block.start = static_cast<const float*>(c.bias) + at.column,
            block.start_row = 0;  // distance 0: every row begins with the bias
        } else if (first && in_place && !c.bias) {
            block.start = in_place, block.start_row = 4 * c.row;
        } else if (first) {
            begin_bf16_block(room, c, at);
            block.start = room;
        }
        if (last && in_place)
            block.end = in_place, block.end_row = 4 * c.row;
        else if (last)
            block.end = room;
        p_.form.multiply(block);
        unfinished_ = nullptr;
        if (last && !in_place) {
            finish_[turn_] = {room, c, at};
            unfinished_ = &finish_[turn_];
            turn_ = 1 - turn_;
        }
    }

    // True if A can be read unpacked: the tiles are not cut off at the edge of A, the rows consist of whole cache
    // lines, and the rows do not all fall into a few cache sets, where they would evict each other.
    bool serves_unpacked(const std::uint16_t* left, Range rows, Range depth) const {
        std::int64_t row = 2 * p_.a.row;
        return p_.a.column == 1 && rows.size() % 16 == 0 && depth.size() % 32 == 0 && row % 64 == 0 &&
               row % 2048 != 0 && reinterpret_cast<std::uintptr_t>(left) % 64 == 0;
    }

    const Problem& p_;
    Range rows_, columns_;
    // width_, depth_: columns and rows of a slab (packed part) of B. height_: number of rows of C that are computed
    // with one slab before the next slab is packed.
    std::int64_t width_, depth_, height_;
    std::int64_t part_;   // number of rows of a slab that are multiplied at once; at most left_depth, for the cache
    std::int64_t panel_;  // distance from one panel of the packed B to the next, in numbers
    std::uint16_t *left_, *right_;
    float *block_[2], *waiting_, *sums_;
    Bf16Finish finish_[2];
    const Bf16Finish* unfinished_ = nullptr;
    int turn_ = 0;
};

const Bf16Form* best_form() {
    // bf16_avx512() uses the instruction VDPBF16PS. On a core with AMX, this instruction is half as fast as float
    // multiply-adds (measured: 109 against 217 GFLOP/s); on other cores, it is twice as fast. Therefore bf16_avx512()
    // is no substitute for AMX. If a core has AMX, but the system does not permit its use, bf16_amx() returns null, and
    // the factors are widened to float.
    if (cpu_has_amx()) return bf16_amx();
    return bf16_avx512();
}

// The instructions for bf16 factors (Bf16Form) that are used if the instruction set is "avx512"; null if the factors
// are widened to float.
const Bf16Form*& chosen_form() {
    static const Bf16Form* form = best_form();
    return form;
}

const Bf16Form* form_in_use() { return std::strcmp(instruction_set(), "avx512") == 0 ? chosen_form() : nullptr; }

}  // namespace

bool gemm_bf16(std::int64_t m, std::int64_t n, std::int64_t k, Factor a, Factor b, Product c) {
    const Bf16Form* form = form_in_use();
    if (!form || a.dtype != DType::bf16 || b.dtype != DType::bf16 || k == 0) return false;
    const std::int64_t panel = 32 * whole(k, 32), panels = parts(n, 32);
    const void* const packed_b = packed_copy(form, m, n, k, b, 2 * panels * panel, [&](void* to) {
        parallel_each(panels, [&](std::int64_t i) {
            pack_bf16_right(static_cast<std::uint16_t*>(to) + i * panel, panel, b,
                            {0, k, 32 * i, std::min(n, 32 * (i + 1))});
        });
    });
    Problem problem{*form, m, n, k, a, b, c, static_cast<const std::uint16_t*>(packed_b)};
    // right_cost: packing a column of B takes about as long as multiplying it by this many rows of A. left_cost:
    // reading a row of A (or transposing it, if the rows of A are not contiguous) takes about as long as multiplying it
    // by this many columns of B.
    constexpr std::int64_t least = 1 << 20;  // fewer multiply-adds are not worth waking a thread
    const double right_cost = packed_b ? cost_of_packed : 50, left_cost = a.column == 1 ? 60 : 100;
    const std::int64_t most = std::clamp<std::int64_t>(m * n * k / least, 1, threads());
    const GemmGrid grid = choose_grid(m, n, most, 32, 32, left_cost, right_cost);
    std::int64_t across = parts(n, grid.width);
    parallel_each(parts(m, grid.height) * across, [&](std::int64_t i) {
        Range rows = Range{0, m}.cut(i / across * grid.height, grid.height);
        Range columns = Range{0, n}.cut(i % across * grid.width, grid.width);
        Part(problem, rows, columns).run();
    });
    return true;
}

const char* bf16_form() {
    const Bf16Form* form = form_in_use();
    return form ? form->name : "widened";
}

bool set_bf16_form(const char* name) {
    for (const Bf16Form* form : {bf16_amx(), bf16_avx512()})
        if (form && std::strcmp(form->name, name) == 0) {
            chosen_form() = form;
            return true;
        }
    if (std::strcmp(name, "widened") != 0) return false;
    chosen_form() = nullptr;
    return true;
}

}  // namespace masquerade
