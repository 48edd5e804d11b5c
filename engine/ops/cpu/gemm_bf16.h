// SPDX-License-Identifier: MIT
// The matrix product of two bf16 factors in bf16 arithmetic: products of pairs, sums in float.
//
// C is computed in blocks of 32 x 32. Every element is one chain of sums along K, 32 products at a time. Between two
// parts of K the sums are kept in memory as float, so the bits depend neither on how K is cut nor on the position of
// the element. If C is f32, the chain begins with the old C (if `add` is set) and the bias. Several products C += A B
// over consecutive parts of K, all but the last a multiple of 32 deep, therefore have the bits of one product. If C is
// bf16, the chain begins with zero; the old C and the bias are added at the end, before the only rounding.
//
// Both forms read the same packed factors, which are padded with zeros:
//   left   rows of A, 32 at a time, K along them
//   right  panels of 32 columns of B; a step is 32 products deep and has two tiles of 16 rows of 16 pairs: row i of a
//          tile holds the products 2 i and 2 i + 1 of 16 columns
#pragma once
#include "engine/ops/cpu/gemm.h"

namespace masquerade {

// The place and size of a block of C.
struct Bf16Place {
    std::int64_t row, column, rows, columns;
};

// A block with complete sums that is still to be written to C.
struct Bf16Finish {
    const float* block;
    Product c;
    Bf16Place at;
};

// One block: end = start + left right. left_row, start_row and end_row are distances in bytes. A null start stands for
// zeros.
struct Bf16Block {
    std::int64_t steps;           // number of steps, of 32 products each
    int row_tiles, column_tiles;  // number of tiles of 16 rows, and of 16 columns: 1 or 2
    const std::uint16_t* left;
    std::int64_t left_row;
    const std::uint16_t* right;
    const float* start;
    std::int64_t start_row;
    float* end;
    std::int64_t end_row;
    const Bf16Finish* before;  // an earlier block to be written to C, or null; AMX writes it while the tiles are busy
};

// A way to multiply blocks: a set of instructions.
struct Bf16Form {
    const char* name;
    void (*begin)();  // called on every thread before its first block
    void (*end)();    // called on every thread after its last block
    void (*multiply)(const Bf16Block&);
};

// Null if the machine, the system or the compiler does not have the form.
const Bf16Form* bf16_amx();
const Bf16Form* bf16_avx512();

// Packs rows of f, from element (row, k) on, into `to` (32, depth), whose rows are `to_row` numbers apart. Pads with
// zeros to a multiple of 16 rows and of 32 columns.
void pack_bf16_left(std::uint16_t* to, std::int64_t to_row, const Factor& f, std::int64_t row, std::int64_t rows,
                    std::int64_t k, std::int64_t depth);
// Packs panels of f, from element (k, column) on, into `to`; panels are `panel` numbers apart. Pads with zeros to a
// multiple of 32 rows and at least to a multiple of 16 columns: a tile without any column is not read.
void pack_bf16_right(std::uint16_t* to, std::int64_t panel, const Factor& f, std::int64_t k, std::int64_t depth,
                     std::int64_t column, std::int64_t columns);

// block(32,32) = C (if add) + bias, for C in f32; zeros outside C.
void begin_bf16_block(float* block, const Product& c, const Bf16Place& at);
// Writes a block to C. If C is bf16, the bias and the old C (if `add` is set) are added first, and the sum is rounded.
void finish_bf16_block(const Bf16Finish& finish);

// Computes the product of gemm() if both factors are bf16, in the form that bf16_form() returns. Returns false, and
// does nothing, if a factor is not bf16, if the form is "widened", or if K is 0.
bool gemm_bf16(std::int64_t m, std::int64_t n, std::int64_t k, Factor a, Factor b, Product c);

}  // namespace masquerade
