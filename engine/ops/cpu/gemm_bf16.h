// SPDX-License-Identifier: MIT
// The matrix product of two bf16 factors in bf16 arithmetic: products of pairs, sums in float.
//
// C is computed in blocks of 32 x 32. Every element is one chain of sums along K, 32 products at a time. Between two
// parts of K the sums are kept in memory as float, so the bits depend neither on the cut of K nor on the place of the
// element. For C in f32, the chain begins with the old C (if it is added to) and the bias; so C += A B over pieces of
// K, each but the last a multiple of 32 deep, is the chain of the whole product. For C in bf16, the chain begins with
// zero, and both are added at the end, before the only rounding.
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

// One block: end = start + left right. Row distances are in bytes; a null start is zeros.
struct Bf16Block {
    std::int64_t steps;           // of 32 products each
    int row_tiles, column_tiles;  // of 16; 1 or 2
    const std::uint16_t* left;
    std::int64_t left_row;
    const std::uint16_t* right;
    const float* start;
    std::int64_t start_row;
    float* end;
    std::int64_t end_row;
    const Bf16Finish* before;  // or null; AMX writes it between the steps, while the tiles are busy
};

struct Bf16Form {
    const char* name;
    void (*begin)();  // called on every thread before its blocks; end() after them
    void (*end)();
    void (*multiply)(const Bf16Block&);
};

// Null if the machine, the system or the compiler does not have the form.
const Bf16Form* bf16_amx();
const Bf16Form* bf16_avx512();

// to(32, depth) = rows of f from (row, k) on, `to_row` numbers apart, padded with zeros to a multiple of 16 rows and 32
// columns.
void pack_bf16_left(std::uint16_t* to, std::int64_t to_row, const Factor& f, std::int64_t row, std::int64_t rows,
                    std::int64_t k, std::int64_t depth);
// Panels of f from (k, column) on, `panel` numbers apart, padded with zeros to a multiple of 32 rows and of 16 columns
// or more: a tile without any column is not read.
void pack_bf16_right(std::uint16_t* to, std::int64_t panel, const Factor& f, std::int64_t k, std::int64_t depth,
                     std::int64_t column, std::int64_t columns);

// block(32,32) = C (if add) + bias, for C in f32; zeros outside C.
void begin_bf16_block(float* block, const Product& c, const Bf16Place& at);
// C = block, rounded if C is bf16.
void finish_bf16_block(const Bf16Finish& finish);

// The work of gemm() for two factors of bf16, in the form that bf16_form() names. Returns false, and does nothing, if
// that form is "widened" or there are no products.
bool gemm_bf16(std::int64_t m, std::int64_t n, std::int64_t k, Factor a, Factor b, Product c);

}  // namespace masquerade
