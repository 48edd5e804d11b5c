// SPDX-License-Identifier: MIT
// The product of two bf16 factors in bf16 arithmetic (gemm_bf16.h): how it is cut into parts, and which thread computes
// which part of C.
#include "engine/ops/cpu/gemm_bf16.h"

#include "engine/ops/cpu/gemm_kernel.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/cpu/workspace.h"

#include <algorithm>
#include <cstring>

namespace masquerade {
namespace {

// 32 rows of A of depth left_depth fit into the first-level cache of a core (40 KiB); right_room packed numbers of B (1
// MiB), or sums_room sums of C (1.2 MiB), fit into its second-level cache.
constexpr std::int64_t left_depth = 640, right_room = 512 * 1024, sums_room = 300 * 1024;
constexpr std::int64_t slab_columns = 512;  // columns of a slab of B if its whole depth does not fit

std::int64_t parts(std::int64_t size, std::int64_t most) { return (size + most - 1) / most; }
std::int64_t whole(std::int64_t size, std::int64_t unit) { return parts(size, unit) * unit; }
// Returns the size of the parts if `size` is cut into equal parts (the last may be smaller): at most `most`, and a
// multiple of 32. `most` is a multiple of 32.
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
};

struct Scratch {};

// The part of C that one thread computes. The thread packs B slab by slab. For each slab it loops over its rows of A,
// 32 at a time, and over parts of K of at most left_depth. Between two parts of K, the sums of the 32 rows are stored
// in `waiting`; between two slabs, the sums of all rows are stored in `sums`.
class Part {
  public:
    Part(const Problem& problem, Range rows, Range columns) : p_(problem), rows_(rows), columns_(columns) {
        width_ = whole(columns.size(), 32), depth_ = whole(p_.k, 32), height_ = whole(rows.size(), 32);
        if (p_.a.column != 1 && depth_ > left_depth) {
            // A panel takes 64 bytes from each row of A^T. The slab is so small that the rest of these rows is still in
            // the cache when the next panel is packed.
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

        std::int64_t waiting = part_ < depth_ ? 32 * width_ : 0, sums = depth_ < p_.k ? height_ * width_ : 0;
        std::int64_t left = 32 * part_, right = depth_ * width_;
        float* room = workspace<Scratch>(std::size_t(2 * 1024 + waiting + sums + (left + right) / 2));
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
        pack_bf16_right(right_, 32 * depth_, p_.b, depth.begin, depth.size(), columns.begin, columns.size());
        for (std::int64_t m = rows.begin; m < rows.end; m += 32)
            for (std::int64_t k = depth.begin; k < depth.end; k += part_) {
                Range now = depth.cut(k, part_);
                float* sums = sums_ + (m - rows.begin) * width_;
                multiply_rows(rows.cut(m, 32), columns, now, right_ + 32 * (k - depth.begin),
                              now.begin == depth.begin ? sums : waiting_, now.end == depth.end ? sums : waiting_);
            }
    }

    // Computes a row of blocks. Sums are read from `start` and written to `end`. At the first part of K they begin as
    // described in gemm_bf16.h instead; at the last part they are written to C.
    void multiply_rows(Range rows, Range columns, Range depth, const std::uint16_t* right, float* start, float* end) {
        const auto* left =
            static_cast<const std::uint16_t*>(p_.a.data) + rows.begin * p_.a.row + depth.begin * p_.a.column;
        std::int64_t left_row = 2 * p_.a.row;
        if (!serves_unpacked(left, rows, depth)) {
            pack_bf16_left(left_, part_, p_.a, rows.begin, rows.size(), depth.begin, depth.size());
            left = left_, left_row = 2 * part_;
        }
        for (std::int64_t column = columns.begin; column < columns.end; column += 32) {
            Bf16Place at{rows.begin, column, rows.size(), columns.cut(column, 32).size()};
            Bf16Block block{parts(depth.size(), 32),
                            at.rows > 16 ? 2 : 1,
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
            right += 32 * depth_, start += 1024, end += 1024;
        }
        if (!p_.c.then || depth.end < p_.k) return;
        if (unfinished_) finish_bf16_block(*unfinished_);
        unfinished_ = nullptr;
        p_.c.then(rows.begin, rows.end, columns.begin, columns.end);
    }

    void multiply_block(Bf16Block& block, const Bf16Place& at, bool first, bool last) {
        const Product& c = p_.c;
        float *room = block_[turn_], *in_place = nullptr;
        if (c.dtype == DType::f32 && at.rows == 32 && at.columns == 32)
            in_place = static_cast<float*>(c.data) + at.row * c.row + at.column;
        if (first && (c.dtype != DType::f32 || (!c.add && !c.bias))) {
            block.start = nullptr;
        } else if (first && !c.add && at.columns == 32) {
            block.start = c.bias + at.column, block.start_row = 0;  // distance 0: every row is the bias
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

    // True if A can be read unpacked: its tiles are whole, its rows consist of whole cache lines, and the rows do not
    // all fall into a few cache sets.
    bool serves_unpacked(const std::uint16_t* left, Range rows, Range depth) const {
        std::int64_t row = 2 * p_.a.row;
        return p_.a.column == 1 && rows.size() % 16 == 0 && depth.size() % 32 == 0 && row % 64 == 0 &&
               row % 2048 != 0 && reinterpret_cast<std::uintptr_t>(left) % 64 == 0;
    }

    const Problem& p_;
    Range rows_, columns_;
    // width_, depth_: size of a slab of B. height_: number of rows of C whose sums are kept for the next slab.
    std::int64_t width_, depth_, height_;
    std::int64_t part_;  // depth of a part of a slab
    std::uint16_t *left_, *right_;
    float *block_[2], *waiting_, *sums_;
    Bf16Finish finish_[2];
    const Bf16Finish* unfinished_ = nullptr;
    int turn_ = 0;
};

const Bf16Form* best_form() {
#ifdef __x86_64__
    // On a core with AMX, VDPBF16PS is half as fast as float multiply-adds (measured: 109 against 217 GFLOP/s); on
    // other cores it is twice as fast. It is therefore no substitute for AMX: if the system does not permit AMX,
    // bf16_amx() is null, and the factors are widened to float.
    if (__builtin_cpu_supports("amx-bf16")) return bf16_amx();
#endif
    return bf16_avx512();
}

// The form in use; null: the factors are widened to float.
const Bf16Form*& chosen_form() {
    static const Bf16Form* form = best_form();
    return form;
}

const Bf16Form* form_in_use() { return std::strcmp(instruction_set(), "avx512") == 0 ? chosen_form() : nullptr; }

}  // namespace

bool gemm_bf16(std::int64_t m, std::int64_t n, std::int64_t k, Factor a, Factor b, Product c) {
    const Bf16Form* form = form_in_use();
    if (!form || a.dtype != DType::bf16 || b.dtype != DType::bf16 || k == 0) return false;
    Problem problem{*form, m, n, k, a, b, c};
    // right_cost: packing a column of B takes about as long as multiplying it by this many rows of A. left_cost:
    // reading a row of A, or transposing it, takes about as long as multiplying it by this many columns of B.
    constexpr std::int64_t least = 1 << 20;  // multiply-adds that make waking a thread worthwhile
    const double right_cost = 50, left_cost = a.column == 1 ? 60 : 100;
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
