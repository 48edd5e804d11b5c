// SPDX-License-Identifier: MIT
// Packs the factors of bf16 products, sets blocks of C to their initial sums, and writes finished blocks to C.
//
// This file is compiled for AVX-512, whatever the rest of the program is compiled for. Therefore it calls only
// intrinsics and functions that are local to it: if it called a shared function, the linker could make the rest of the
// program use the copy for AVX-512 (see gemm_block.h).
#include "engine/ops/cpu/gemm_bf16.h"
#include "engine/ops/cpu/instructions.h"

#ifdef __x86_64__
#include <immintrin.h>

#include <utility>

COMPILE_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma")

#include "engine/ops/cpu/gemm_bf16_rows.h"

namespace masquerade {
namespace {

typedef std::uint32_t Words __attribute__((vector_size(64), may_alias));
typedef std::uint16_t Halves __attribute__((vector_size(64), may_alias));
typedef std::uint32_t FourWords __attribute__((vector_size(16), aligned(2), may_alias));

inline Halves load(__mmask32 there, const std::uint16_t* p) { return (Halves)_mm512_maskz_loadu_epi16(there, p); }
template <class Numbers>
inline void store(std::uint16_t* p, Numbers v) {
    _mm512_storeu_si512(p, (__m512i)v);
}

// zip() interleaves numbers of the registers `a` and `b`. Each register is cut into parts of `part` numbers; from every
// part, the lower half (half = 0) or the upper half (half = 1) is used. Each zip() is one instruction. zipped() returns
// the source of element e of the result: an index in `a`, or `numbers` plus an index in `b`.
constexpr int zipped(int e, int numbers, int part, int half) {
    const int place = e % part;
    return e - place + half * part / 2 + place / 2 + place % 2 * numbers;
}
template <int part, int half, class Numbers, int... e>
inline Numbers zip(Numbers a, Numbers b, std::integer_sequence<int, e...>) {
    return __builtin_shufflevector(a, b, zipped(e, sizeof...(e), part, half)...);
}
template <int part, int half, class Numbers>
inline Numbers zip(Numbers a, Numbers b) {
    return zip<part, half>(a, b, std::make_integer_sequence<int, sizeof(Numbers) / sizeof a[0]>{});
}
// Transposes n x n numbers in each 16-byte quarter of n registers: number j of register i becomes number i of
// register j. Each round interleaves register i with register i + n / 2. If the binary digits of j follow those of i, a
// round rotates all these digits by one place.
template <int n, class Numbers>
inline void transpose(Numbers (&v)[n]) {
#pragma GCC unroll 3
    for (int round = 1; round < n; round *= 2) {
        Numbers t[n];
#pragma GCC unroll 4
        for (int i = 0; i < n / 2; i++) {
            t[2 * i] = zip<n, 0>(v[i], v[i + n / 2]);
            t[2 * i + 1] = zip<n, 1>(v[i], v[i + n / 2]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) v[i] = t[i];
    }
}

// Loads 16 bytes from each of four addresses, which are `apart` numbers apart.
inline __m512i gather_quarters(const std::uint16_t* p, std::int64_t apart) {
    auto quarter = [&](int i) { return *reinterpret_cast<const FourWords*>(p + i * apart); };
    __m512i v = _mm512_castsi128_si512((__m128i)quarter(0));
    v = _mm512_inserti32x4(v, (__m128i)quarter(1), 1);
    v = _mm512_inserti32x4(v, (__m128i)quarter(2), 2);
    return _mm512_inserti32x4(v, (__m128i)quarter(3), 3);
}

// Transposes 32 rows and `columns` columns of `from`: column j of `from` becomes row j of `to`. `columns` is a multiple
// of 8. One step transposes 8 columns in eight registers: the 16-byte quarter q of register i holds row 8q + i. The
// step transposes the 8 x 8 numbers of all four quarters at the same time.
inline void turn(std::uint16_t* to, std::int64_t to_row, const std::uint16_t* from, std::int64_t from_row,
                 std::int64_t columns) {
    for (std::int64_t j = 0; j < columns; j += 8, from += 8, to += 8 * to_row) {
        Halves v[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) v[i] = (Halves)gather_quarters(from + i * from_row, 8 * from_row);
        transpose(v);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) store(to + i * to_row, v[i]);
    }
}

// Transposes 16 x 16 pairs of numbers: to[p][j] = from[j][p]. The rows of `to` are 16 pairs apart.
inline void turn_pairs(std::uint16_t* to, const std::uint16_t* from, std::int64_t from_row) {
    for (int p = 0; p < 4; p++, from += 8, to += 4 * 32) {
        Words v[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) v[i] = (Words)gather_quarters(from + i * from_row, 4 * from_row);
        transpose(v);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) store(to + 32 * i, v[i]);
    }
}

// A copy of `rows` x `columns` numbers, at most 32 x 32, padded with zeros to 32 x 32.
struct Padded {
    alignas(64) std::uint16_t data[32 * 32];
    Padded(const std::uint16_t* from, std::int64_t from_row, std::int64_t rows, std::int64_t columns) {
        for (int i = 0; i < 32; i++)
            store(data + 32 * i, load(i < rows ? first_of_32(columns) : 0, from + i * from_row));
    }
};

// Interleaves two rows of 32 numbers into 32 pairs, and stores 16 pairs into each of two tiles.
inline void store_pairs(std::uint16_t* to, Halves even, Halves odd) {
    store(to, zip<32, 0>(even, odd));
    store(to + 512, zip<32, 1>(even, odd));
}

}  // namespace

void pack_bf16_left(std::uint16_t* to, std::int64_t to_row, const Factor& f, const Area& at) {
    const auto* from = static_cast<const std::uint16_t*>(f.data) + at.m0 * f.row + at.n0 * f.column;
    const std::int64_t rows = at.m1 - at.m0, depth = at.n1 - at.n0, all_rows = rows > 16 ? 32 : 16;
    if (f.column == 1) {
        for (std::int64_t i = 0; i < all_rows; i++) {
            std::int64_t p = 0;
            if (i < rows)
                for (; p + 32 <= depth; p += 32) store(to + i * to_row + p, load(~0u, from + i * f.row + p));
            for (; p < depth; p += 32)
                store(to + i * to_row + p, load(i < rows ? first_of_32(depth - p) : 0, from + i * f.row + p));
        }
    } else {
        for (std::int64_t p = 0; p < depth; p += 32, to += 32, from += 32 * f.column) {
            if (rows == 32 && p + 32 <= depth) {
                turn(to, to_row, from, f.column, 32);
            } else {
                Padded padded(from, f.column, depth - p, rows);
                turn(to, to_row, padded.data, 32, all_rows);
            }
        }
    }
}

void pack_bf16_right(std::uint16_t* to, std::int64_t panel, const Factor& f, const Area& at) {
    const auto* from = static_cast<const std::uint16_t*>(f.data) + at.m0 * f.row + at.n0 * f.column;
    const std::int64_t depth = at.m1 - at.m0, columns = at.n1 - at.n0;
    if (f.column == 1) {
        std::int64_t all_depth = (depth + 31) / 32 * 32;
        // f is read in the order in which it is stored, two rows at a time, so that few memory pages are in use.
        for (std::int64_t p = 0; p < all_depth; p += 2) {
            const std::uint16_t *even = from + p * f.row, *odd = even + f.row;
            std::uint16_t* pairs = to + p / 32 * 1024 + p % 32 * 16;
            std::int64_t j = 0;
            if (p + 2 <= depth)
                for (; j + 32 <= columns; j += 32, pairs += panel)
                    store_pairs(pairs, load(~0u, even + j), load(~0u, odd + j));
            for (; j < columns; j += 32, pairs += panel) {
                __mmask32 there = first_of_32(columns - j);
                store_pairs(pairs, load(p < depth ? there : 0, even + j), load(p + 1 < depth ? there : 0, odd + j));
            }
        }
        return;
    }
    for (std::int64_t j = 0; j < columns; j += 16)
        for (std::int64_t p = 0; p < depth; p += 32) {
            std::uint16_t* tile = to + j / 32 * panel + p * 32 + j % 32 * 32;
            if (j + 16 <= columns && p + 32 <= depth) {
                turn_pairs(tile, from + j * f.column + p, f.column);
            } else {
                Padded padded(from + j * f.column + p, f.column, columns - j, depth - p);
                turn_pairs(tile, padded.data, 32);
            }
        }
}

void begin_bf16_block(float* block, const Product& c, const Bf16Place& at) {
    const auto* from = static_cast<const float*>(c.data) + at.row * c.row + at.column;
    for (int half = 0; half < 2; half++, block += 16, from += 16) {
        __mmask16 there = __mmask16(first_of_32(at.columns - 16 * half));
        __m512 bias = _mm512_setzero_ps();
        if (c.bias) bias = _mm512_maskz_loadu_ps(there, static_cast<const float*>(c.bias) + at.column + 16 * half);
        for (int i = 0; i < 32; i++) {
            __m512 start = bias;
            if (c.add && i < at.rows) {
                start = _mm512_maskz_loadu_ps(there, from + i * c.row);
                if (c.bias) start += bias;  // adding a bias of 0 would turn -0 into 0
            }
            _mm512_store_ps(block + 32 * i, start);
        }
    }
}

void finish_bf16_block(const Bf16Finish& finish) { RowWriter(&finish).write(finish.at.rows); }

}  // namespace masquerade
END_COMPILE_FOR

#else
namespace masquerade {  // on other processors, nothing calls these functions
void pack_bf16_left(std::uint16_t*, std::int64_t, const Factor&, const Area&) {}
void pack_bf16_right(std::uint16_t*, std::int64_t, const Factor&, const Area&) {}
void begin_bf16_block(float*, const Product&, const Bf16Place&) {}
void finish_bf16_block(const Bf16Finish&) {}
}  // namespace masquerade
#endif
