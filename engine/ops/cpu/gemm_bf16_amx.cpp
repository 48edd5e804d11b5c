// SPDX-License-Identifier: MIT
// Multiplies blocks of bf16 products with AMX, which has eight registers (tiles) of 16 rows of 64 bytes. Four tiles
// hold sums, two hold the left factor and one the right factor; one is not used.
//
// The instruction TDPBF16PS adds 32 products to each element of a tile of sums. It sums the 16 products with even index
// and the 16 products with odd index separately, each from zero as a chain of fused multiply-adds. Then it adds both
// sums to the element (Intel SDM). Whatever modes the program has set, the instruction rounds to nearest, replaces
// denormals by zeros in what it reads and writes, and raises no floating-point exception.
#include "engine/ops/cpu/gemm_bf16.h"
#include "engine/ops/cpu/instructions.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

COMPILE_FOR("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")

#include "engine/ops/cpu/gemm_bf16_rows.h"

namespace masquerade {
namespace {

struct alignas(64) TileConfig {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64, "LDTILECFG reads 64 bytes");

void configure_tiles() {
    // The object is static, because the compiler assumes that only its first 8 bytes are read. The other bytes of a
    // local object could stay unset.
    static const TileConfig config;
    _tile_loadconfig(&config);
}

void release_tiles() { _tile_release(); }

// Tiles 0 to 3 contain the sums of the block, tiles 4 and 5 the block's rows of the left factor, and tile 6 columns of
// the right factor. All blocks in the same rows of C use the same rows of the left factor, which should stay in the
// first-level cache. The right factor is therefore loaded with a hint not to store it in that cache (tileloaddt1).
template <bool two_rows, bool two_columns>
void multiply_tiles(const Bf16Block& g) {
    constexpr std::int64_t tile_row = 64, tile = 1024;
    const std::int64_t steps = g.steps, left_row = g.left_row, end_row = g.end_row;
    if (g.start) {
        const char *start = reinterpret_cast<const char*>(g.start), *below = start + 16 * g.start_row;
        _tile_loadd(0, start, g.start_row);
        if (two_columns) _tile_loadd(1, start + 64, g.start_row);
        if (two_rows) _tile_loadd(2, below, g.start_row);
        if (two_rows && two_columns) _tile_loadd(3, below + 64, g.start_row);
    } else {
        _tile_zero(0);
        if (two_columns) _tile_zero(1);
        if (two_rows) _tile_zero(2);
        if (two_rows && two_columns) _tile_zero(3);
    }
    const char *left = reinterpret_cast<const char*>(g.left), *left_below = left + 16 * left_row;
    const char* right = reinterpret_cast<const char*>(g.right);
    RowWriter before(g.before);
    const std::int64_t rows_a_step = (before.rows() + steps - 1) / steps;
    for (std::int64_t step = 0; step < steps; step++) {
        _tile_stream_loadd(6, right, tile_row);
        _tile_loadd(4, left, left_row);
        if (two_rows) _tile_loadd(5, left_below, left_row);
        _tile_dpbf16ps(0, 4, 6);
        if (two_rows) _tile_dpbf16ps(2, 5, 6);
        if (two_columns) {
            _tile_stream_loadd(6, right + tile, tile_row);
            _tile_dpbf16ps(1, 4, 6);
            if (two_rows) _tile_dpbf16ps(3, 5, 6);
        }
        left += 64, left_below += 64, right += 2 * tile;
        before.write(rows_a_step);
    }
    char *end = reinterpret_cast<char*>(g.end), *end_below = end + 16 * end_row;
    _tile_stored(0, end, end_row);
    if (two_columns) _tile_stored(1, end + 64, end_row);
    if (two_rows) _tile_stored(2, end_below, end_row);
    if (two_rows && two_columns) _tile_stored(3, end_below + 64, end_row);
}

void multiply(const Bf16Block& g) {
    if (g.rows > 16)
        g.column_tiles == 2 ? multiply_tiles<true, true>(g) : multiply_tiles<true, false>(g);
    else
        g.column_tiles == 2 ? multiply_tiles<false, true>(g) : multiply_tiles<false, false>(g);
}

}  // namespace
}  // namespace masquerade
END_COMPILE_FOR

namespace masquerade {
bool cpu_has_amx() {
    unsigned a, b, c, d;  // leaf 7: bit 24 of EDX is AMX-TILE, bit 22 is AMX-BF16
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & d >> 22 & 1);
}
const Bf16Form* bf16_amx() {
    static constexpr Bf16Form form = {"amx", configure_tiles, release_tiles, multiply};
    // Linux saves the tiles (8 KiB per thread) only for a process that has asked for permission to use them.
    static const bool permitted = [] {
        constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
        constexpr long tile_data = 18;               // XFEATURE_XTILEDATA
        return bf16_avx512() && cpu_has_amx() && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
    }();
    return permitted ? &form : nullptr;
}
}  // namespace masquerade

#else
namespace masquerade {
bool cpu_has_amx() { return false; }
const Bf16Form* bf16_amx() { return nullptr; }
}  // namespace masquerade
#endif
