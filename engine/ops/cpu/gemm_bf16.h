// SPDX-License-Identifier: MIT
// The matrix product of two bf16 factors with the CPU's bf16 instructions, which multiply pairs of bf16 numbers and
// sum in float.
//
// C is computed in blocks of 32 x 32. Every element of C is one running sum over K, to which 32 products are added at a
// time. Between two parts of K, the sums are kept in memory as float, so the bits depend neither on how K is cut nor on
// the position of the element. If C is f32, the sum begins with the old C (if `add` is set) plus the bias. A product
// can then be split into several products C += A B over consecutive parts of K. If the depth of all parts except the
// last is a multiple of 32, the bits are the same. If C is bf16, the sum begins with zero. The old C and the bias are
// added at the end, before the only rounding.
//
// The forms for AMX and for AVX-512 read the same packed factors, which are padded with zeros:
//   left   up to 32 rows of A, each contiguous along K
//   right  panels of 32 columns of B. A step of a panel is 32 products deep and consists of two tiles, each for 16
//          columns. Row i of a tile holds 16 pairs: for each column, the numbers 2 i and 2 i + 1 of the step.
#pragma once
#include "engine/ops/cpu/gemm.h"

namespace masquerade {

// The first row and column of a block in C, and the block's size.
struct Bf16Place {
    std::int64_t row, column, rows, columns;
};

// A block with complete sums that is still to be written to C.
struct Bf16Finish {
    const float* block;
    Product c;
    Bf16Place at;
};

// The computation of one block: end = start + left right. left_row, start_row and end_row are the distances from one
// row to the next, in bytes. A null `start` stands for zeros.
struct Bf16Block {
    std::int64_t steps;  // number of steps along K, each 32 products deep
    int rows;            // rows of C, at most 32; more rows of the block may be computed, up to a multiple of 16
    int column_tiles;    // number of tiles across, 1 or 2, of 16 columns each
    const std::uint16_t* left;
    std::int64_t left_row;
    const std::uint16_t* right;
    const float* start;
    std::int64_t start_row;
    float* end;
    std::int64_t end_row;
    const Bf16Finish* before;  // an earlier block to be written to C, or null; AMX writes it while tiles are multiplied
};

// The functions that multiply blocks with one set of instructions: AMX or AVX-512.
struct Bf16Form {
    const char* name;
    void (*begin)();  // called by a thread before the first block of its part of the product C
    void (*end)();    // called by a thread after the last block of its part of the product C
    void (*multiply)(const Bf16Block&);
};

// Return null if the machine, the operating system or the compiler does not support the form.
bool cpu_has_amx();  // whether the CPU has AMX with bf16, even if the system does not permit its use
const Bf16Form* bf16_amx();
const Bf16Form* bf16_avx512();

// Packs an area of the factor f into `to`, whose rows are `to_row` numbers apart. The area has at most 32 rows. Pads
// with zeros to a multiple of 16 rows and of 32 columns.
void pack_bf16_left(std::uint16_t* to, std::int64_t to_row, const Factor& f, const Area& at);
// Packs an area of the factor f into panels of 32 columns, which are `panel` numbers apart. Pads with zeros to a
// multiple of 32 rows and at least to a multiple of 16 columns. A tile (16 columns of a panel) that has no column of f
// may stay unset, because it is not read.
void pack_bf16_right(std::uint16_t* to, std::int64_t panel, const Factor& f, const Area& at);

// Sets block(32,32) to the initial values of its sums: the bias (0 if there is none) plus, if c.add is set, the old C.
// C must be f32. Columns outside C become 0. Rows outside C are set, too, but not used.
void begin_bf16_block(float* block, const Product& c, const Bf16Place& at);
// Writes a block with complete sums to C. If C is bf16, the bias and the old C (if `add` is set) are added first, and
// the result is rounded.
void finish_bf16_block(const Bf16Finish& finish);

// Computes the product of gemm() if both factors are bf16, in the form that bf16_form() returns. Returns false, and
// does nothing, if a factor is not bf16, if the form is "widened", or if K is 0.
bool gemm_bf16(std::int64_t m, std::int64_t n, std::int64_t k, Factor a, Factor b, Product c);

}  // namespace masquerade
