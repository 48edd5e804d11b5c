// SPDX-License-Identifier: MIT
// The product of bf16 factors: how it is cut, and which thread computes which part of C.
#include "engine/ops/cpu/gemm_bf16.h"

#include "engine/ops/cpu/parallel.h"
#include "engine/ops/cpu/workspace.h"

#include <algorithm>
#include <cstdlib>

namespace masquerade {
namespace {

std::int64_t env(const char* n, std::int64_t d) { const char* s = getenv(n); return s ? atoll(s) : d; }

// 32 rows of A of this depth stay in a core's first-level cache (40 KiB); these packed numbers of B (1 MiB) and
// sums of C (1.2 MiB) in its second-level one.
const std::int64_t left_depth = env("LD", 640), right_room = env("RR", 512) * 1024, sums_room = env("SR", 300) * 1024;
const std::int64_t least_columns = env("MC", 512);  // of a slab, where there are so many
const std::int64_t direct_left = env("DL", 1);

std::int64_t parts(std::int64_t size, std::int64_t most) { return (size + most - 1) / most; }
std::int64_t whole(std::int64_t size, std::int64_t unit) { return parts(size, unit) * unit; }
// The size of parts, none above `most`, that are equal but for the last; a multiple of 32.
std::int64_t even_part(std::int64_t size, std::int64_t most) { return whole(parts(size, parts(size, most)), 32); }

struct Scratch {};

struct Problem {
    const Bf16Form& form;
    std::int64_t m, n, k;
    Factor a, b;
    Product c;
};

struct Range {
    std::int64_t begin, end;
    std::int64_t size() const { return end - begin; }
};
Range cut(Range all, std::int64_t begin, std::int64_t size) { return {begin, std::min(all.end, begin + size)}; }

const std::uint16_t* at(const Factor& f, std::int64_t i, std::int64_t j) {
    return static_cast<const std::uint16_t*>(f.data) + i * f.row + j * f.column;
}

// What one thread computes: some rows and columns of C. Its columns and K are cut into slabs of B, which are
// packed; within a slab K is cut to the depth of `left_depth` again. Where K waits for its next
// cut, the sums of a row of blocks wait in `waiting`, those of a slab in `sums`.
class Part {
  public:
    Part(const Problem& problem, Range rows, Range columns) : p_(problem), rows_(rows), columns_(columns) {
        width_ = whole(columns.size(), 32), depth_ = whole(p_.k, 32), height_ = whole(rows.size(), 32);
        if (p_.a.column != 1 && depth_ > left_depth) {
            depth_ = even_part(p_.k, left_depth);
            width_ = even_part(columns.size(), least_columns);
        } else if (width_ * depth_ > right_room) {
            if (depth_ * least_columns > right_room) {
                width_ = even_part(columns.size(), least_columns);
                depth_ = even_part(p_.k, right_room / width_ / 32 * 32);
            } else
                width_ = even_part(columns.size(), right_room / depth_ / 32 * 32);
        }
        if (depth_ < p_.k) height_ = even_part(rows.size(), sums_room / width_ / 32 * 32);
        part_ = even_part(std::min(depth_, p_.k), left_depth);
        std::int64_t waiting = part_ < depth_ ? 32 * width_ : 0;
        std::int64_t sums = depth_ < p_.k ? height_ * width_ : 0;
        float* room = workspace<Scratch>(std::size_t(2048 + waiting + sums + (32 * part_ + width_ * depth_) / 2));
        block_[0] = room, block_[1] = room + 1024;
        waiting_ = room + 2048;
        sums_ = waiting_ + waiting;
        right_ = reinterpret_cast<std::uint16_t*>(sums_ + sums);
        left_ = right_ + width_ * depth_;
    }

    void run() {
        p_.form.begin();
        for (std::int64_t n = columns_.begin; n < columns_.end; n += width_)
            for (std::int64_t m = rows_.begin; m < rows_.end; m += height_)
                for (std::int64_t k = 0; k < p_.k; k += depth_) multiply_slab(cut(rows_, m, height_), cut(columns_, n, width_), cut({0, p_.k}, k, depth_));
        if (unfinished_) finish_bf16_block(*unfinished_);
        p_.form.end();
    }

  private:
    void multiply_slab(Range rows, Range columns, Range depth) {
        pack_bf16_right(right_, 32 * depth_, p_.b, depth.begin, depth.size(), columns.begin, columns.size());
        for (std::int64_t m = rows.begin; m < rows.end; m += 32)
            for (std::int64_t k = depth.begin; k < depth.end; k += part_)
                multiply_rows(cut(rows, m, 32), columns, depth, cut(depth, k, part_), sums_ + (m - rows.begin) * width_);
    }

    // A row of blocks, of the products `now` of those of the slab.
    void multiply_rows(Range rows, Range columns, Range depth, Range now, float* sums) {
        const std::uint16_t* left = at(p_.a, rows.begin, now.begin);
        std::int64_t left_row = 2 * p_.a.row;
        if (!serves_unpacked(left, left_row, rows, now)) {
            pack_bf16_left(left_, part_, p_.a, rows.begin, rows.size(), now.begin, now.size());
            left = left_, left_row = 2 * part_;
        }
        bool first = now.begin == depth.begin, last = now.end == depth.end;
        const std::uint16_t* right = right_ + 32 * (now.begin - depth.begin);
        float* waiting = waiting_;
        for (std::int64_t column = columns.begin; column < columns.end; column += 32) {
            Bf16Place place{rows.begin, column, rows.size(), std::min<std::int64_t>(32, columns.end - column)};
            Bf16Block block{parts(now.size(), 32), place.rows > 16 ? 2 : 1, place.columns > 16 ? 2 : 1, left, left_row, right, first ? sums : waiting, 128, last ? sums : waiting, 128, unfinished_};
            multiply_block(block, place, now.begin == 0, now.end == p_.k);
            right += 32 * depth_, sums += 1024, waiting += 1024;
        }
    }

    void multiply_block(Bf16Block& block, const Bf16Place& place, bool first, bool last) {
        float* room = block_[turn_];
        bool in_place = p_.c.dtype == DType::f32 && place.rows == 32 && place.columns == 32;
        if (first) block.start = nullptr;
        if (first && (p_.c.add || p_.c.bias)) begin_bf16_block(room, p_.c, place), block.start = room;
        if (last) block.end = room;
        if (last && in_place) {
            block.end = static_cast<float*>(p_.c.data) + place.row * p_.c.row + place.column;
            block.end_row = 4 * p_.c.row;
        }
        p_.form.multiply(block);
        unfinished_ = nullptr;
        if (last && !in_place) {
            finish_[turn_] = {room, p_.c, place};
            unfinished_ = &finish_[turn_];
            turn_ = 1 - turn_;
        }
    }

    // A itself: whole tiles, whole cache lines, and rows that do not fall into the same few sets of the cache.
    bool serves_unpacked(const std::uint16_t* left, std::int64_t left_row, Range rows, Range now) const {
        return direct_left && p_.a.column == 1 && rows.size() % 16 == 0 && now.size() % 32 == 0 &&
               (reinterpret_cast<std::uintptr_t>(left) | std::uintptr_t(left_row)) % 64 == 0 && left_row % 2048 != 0;
    }

    const Problem& p_;
    Range rows_, columns_;
    std::int64_t width_, depth_, height_, part_;  // of a slab; of the part of its K
    std::uint16_t *left_, *right_;
    float *sums_, *waiting_, *block_[2];
    Bf16Finish finish_[2];
    const Bf16Finish* unfinished_ = nullptr;
    int turn_ = 0;
};

// C is cut into rows x columns parts, about one for each thread, so that the largest costs least; in
// multiply-adds for each of K: its own, and what packing costs.
struct Grid {
    std::int64_t height, width;
};

Grid choose_grid(const Problem& p) {
    static const std::int64_t least = env("LE", 2 << 20);  // multiply-adds that are worth waking a thread for
    static const double right_cost = env("RC", 50), left_cost = env("LC", 100), straight_cost = env("SC", 60);
    std::int64_t most = std::clamp<std::int64_t>(p.m * p.n * p.k / least, 1, threads());
    Grid best{};
    double best_cost = 1e300;
    for (std::int64_t rows = 1; rows <= most; rows++) {
        Grid grid{whole(parts(p.m, rows), 32), whole(parts(p.n, most / rows), 32)};
        double height = double(grid.height), width = double(grid.width);
        double cost = height * width + right_cost * width + (p.a.column == 1 ? straight_cost : left_cost) * height;
        if (cost < best_cost) best = grid, best_cost = cost;
    }
    return best;
}

}  // namespace

void gemm_bf16(const Bf16Form& form, std::int64_t m, std::int64_t n, std::int64_t k, Factor a, Factor b,
               Product c) {
    Problem problem{form, m, n, k, a, b, c};
    Grid grid = choose_grid(problem);
    std::int64_t across = parts(n, grid.width);
    parallel_each(parts(m, grid.height) * across, [&](std::int64_t i) {
        Part(problem, cut({0, m}, i / across * grid.height, grid.height), cut({0, n}, i % across * grid.width, grid.width)).run();
    });
}

}  // namespace masquerade
