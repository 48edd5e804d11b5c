// SPDX-License-Identifier: MIT
// The instructions of PTX (PTX ISA 9.0, chapter 9). Each instruction is a template of the same name, in which _ stands
// for a dot. T is the type of the instruction. The code that tests/ptx/translate.py writes calls these templates.
// Divisions and square roots are exactly rounded (IEEE 754), because nvcc approximates them only with -use_fast_math.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/tensor/dtype.h"
#include "tests/emulator/block.h"
#include "tests/ptx/kernels.h"

namespace masquerade::ptx {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using f32 = float;
using f64 = double;

#define PTX            \
    template <class T> \
    inline __attribute__((always_inline))

// ---- registers ------------------------------------------------------------------------------------------------------
template <std::size_t bytes>
using Unsigned =
    std::conditional_t<bytes == 1, u8, std::conditional_t<bytes == 2, u16, std::conditional_t<bytes == 4, u32, u64>>>;
template <class T>
using Double = std::conditional_t<std::is_signed_v<T>, std::conditional_t<sizeof(T) == 2, s32, s64>,
                                  std::conditional_t<sizeof(T) == 2, u32, u64>>;

// Returns the low bits of x as a T. If T has more bits than x, the further bits repeat the sign of x if x is signed,
// and are 0 otherwise.
template <class T, class X>
inline __attribute__((always_inline)) T as(X x) {
    if constexpr (std::is_same_v<T, bool>)
        return x != 0;
    else if constexpr (std::is_integral_v<X>)
        return __builtin_bit_cast(T, Unsigned<sizeof(T)>(x));
    else
        return __builtin_bit_cast(T, Unsigned<sizeof(T)>(__builtin_bit_cast(Unsigned<sizeof(X)>, x)));
}
template <class R, class T>
inline __attribute__((always_inline)) void set(R& to, T x) {
    to = as<R>(x);
}

// The counts of one thread, on its own stack. When the thread ends, end() adds them to the counts of the kernel.
struct Count {
    u32 instructions = 0, loads = 0, bytes_loaded = 0, stores = 0, bytes_stored = 0, shared = 0, products = 0;
    __attribute__((always_inline)) void add(int i, int l, int bl, int s, int bs, int sh, int p) {
        instructions += i, loads += l, bytes_loaded += bl, stores += s, bytes_stored += bs, shared += sh, products += p;
    }
    __attribute__((noinline, no_sanitize("thread"))) void end(Counts* all) const {
        all->instructions += instructions, all->products += products, all->shared += shared;
        all->loads += loads, all->bytes_loaded += bytes_loaded;
        all->stores += stores, all->bytes_stored += bytes_stored;
    }
};

// ---- memory ---------------------------------------------------------------------------------------------------------
// These functions return the address of an access in host memory. All but param() end the launch if the address is not
// aligned to the access. global() also ends it if the address is not in the device's memory.
char* global(u64 address, int bytes, bool writes = false);
char* shared(u64 offset, int bytes);
inline char* on_stack(u64 address, int bytes) {
    emulator::expect_aligned(reinterpret_cast<const void*>(address), std::size_t(bytes));
    return reinterpret_cast<char*>(address);
}
inline char* local(u64 address, int bytes) { return on_stack(address, bytes); }
inline char* param(u64 address, int) { return reinterpret_cast<char*>(address); }
inline char* generic(u64 address, int bytes) { return on_stack(address, bytes); }

template <class T, class... R>
inline __attribute__((always_inline)) void load(const char* at, R&... to) {
    const T* from = reinterpret_cast<const T*>(at);
    (set(to, *from++), ...);
}
template <class T, class... X>
inline __attribute__((always_inline)) void store(char* at, X... x) {
    T* to = reinterpret_cast<T*>(at);
    ((*to++ = x), ...);
}

// The first part has the lowest bits, in pack() and in unpack().
template <class T, class R, class... Parts>
inline __attribute__((always_inline)) void pack(R& to, Parts... parts) {
    constexpr int bits = 8 * sizeof(T) / sizeof...(parts);
    T all = 0;
    int at = 0;
    ((all |= T(as<Unsigned<bits / 8>>(parts)) << at, at += bits), ...);
    set(to, all);
}
template <class T, class... R>
inline __attribute__((always_inline)) void unpack(T all, R&... to) {
    constexpr int bits = 8 * sizeof(T) / sizeof...(to);
    int at = 0;
    ((set(to, Unsigned<bits / 8>(all >> at)), at += bits), ...);
}
PTX T mov(T x) { return x; }
PTX T cvta_shared(T offset) { return offset + reinterpret_cast<u64>(emulator::dynamic_shared_memory()); }
PTX T cvta_to_shared(T address) { return address - reinterpret_cast<u64>(emulator::dynamic_shared_memory()); }

// ---- arithmetic -----------------------------------------------------------------------------------------------------
// Integers wrap around. C++ would compute with narrow integers as signed int, whose overflow is undefined. Wrapping<T>
// is therefore an unsigned type with at least 32 bits.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) < 4, u32, Unsigned<sizeof(T)>>;
#define ARITHMETIC(name, sign)                            \
    PTX T name(T x, T y) {                                \
        if constexpr (std::is_floating_point_v<T>)        \
            return x sign y;                              \
        else                                              \
            return T(Wrapping<T>(x) sign Wrapping<T>(y)); \
    }
ARITHMETIC(add, +)
ARITHMETIC(sub, -)
ARITHMETIC(mul, *)
ARITHMETIC(mul_lo, *)
#undef ARITHMETIC
PTX T div(T x, T y) { return x / y; }
PTX T rem(T x, T y) { return x % y; }
PTX T fma(T x, T y, T z) { return std::fma(x, y, z); }
PTX T mad_lo(T x, T y, T z) { return add<T>(mul_lo<T>(x, y), z); }
PTX Double<T> mul_wide(T x, T y) { return Double<T>(Double<T>(x) * Double<T>(y)); }
PTX Double<T> mad_wide(T x, T y, Double<T> z) { return add<Double<T>>(mul_wide<T>(x, y), z); }
PTX T mul_hi(T x, T y) {
    using Wide =
        std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                           std::conditional_t<std::is_signed_v<T>, s64, u64>>;
    return T(Wide(x) * Wide(y) >> 8 * sizeof(T));
}
PTX T mad_hi(T x, T y, T z) { return add<T>(mul_hi<T>(x, y), z); }
PTX T neg(T x) {
    if constexpr (std::is_floating_point_v<T>)
        return -x;
    else
        return T(0 - Wrapping<T>(x));
}
PTX T abs(T x) {
    if constexpr (std::is_floating_point_v<T>)
        return std::fabs(x);
    else
        return x < 0 ? neg<T>(x) : x;
}
// If one of the operands is NaN, the result is the other operand.
PTX T min(T x, T y) {
    if constexpr (std::is_floating_point_v<T>)
        return std::fmin(x, y);
    else
        return std::min(x, y);
}
PTX T max(T x, T y) {
    if constexpr (std::is_floating_point_v<T>)
        return std::fmax(x, y);
    else
        return std::max(x, y);
}
PTX T sqrt(T x) { return std::sqrt(x); }
PTX T rcp(T x) { return T(1) / x; }
// On a GPU, accurate to 2 units in the last place. Results below the smallest normal number become 0, as on a GPU.
PTX T ex2_approx_ftz(T x) {
    const T y = std::exp2(x);
    return y < std::numeric_limits<T>::min() ? T(0) : y;
}

// ---- bits -----------------------------------------------------------------------------------------------------------
PTX T and_(T x, T y) { return T(x & y); }
PTX T or_(T x, T y) { return T(x | y); }
PTX T xor_(T x, T y) { return T(x ^ y); }
// Bit 4x + 2y + z of `table` is the result for the bits x, y and z.
PTX T lop3(T x, T y, T z, T table) {
    T all = 0;
    for (T n = 0; n < 8; n++)
        if (table >> n & 1) all |= (n & 4 ? x : ~x) & (n & 2 ? y : ~y) & (n & 1 ? z : ~z);
    return all;
}
PTX T not_(T x) {
    if constexpr (std::is_same_v<T, bool>)
        return !x;
    else
        return T(~x);
}
// If a shift is as wide as T or wider, the result is 0 or, for shr of a negative number, -1.
PTX T shl(T x, T by) {
    const auto n = Unsigned<sizeof(T)>(by);
    return n >= 8 * sizeof(T) ? T(0) : T(Wrapping<T>(x) << n);
}
PTX T shr(T x, T by) {
    const auto n = Unsigned<sizeof(T)>(by);
    return n >= 8 * sizeof(T) ? T(std::is_signed_v<T> && x < 0 ? -1 : 0) : T(x >> n);
}
PTX T shf_l_wrap(T low, T high, T by) { return T((u64(high) << 32 | low) << (by & 31) >> 32); }
PTX T shf_r_wrap(T low, T high, T by) { return T((u64(high) << 32 | low) >> (by & 31)); }
PTX u32 popc(T x) { return u32(__builtin_popcountll(x)); }
PTX u32 clz(T x) { return x ? u32(__builtin_clzll(x)) - (64 - 8 * sizeof(T)) : 8 * sizeof(T); }
// bfi returns y, in which the low `length` bits of x replace the bits from bit `from` on.
PTX T bfi(T x, T y, T from, T length) {
    const T field = shl<T>(T(shl<T>(T(1), T(length & 255)) - 1), T(from & 255));
    return T((shl<T>(x, T(from & 255)) & field) | (y & ~field));
}
PTX T bfe(T x, T from, T length) {
    static_assert(std::is_unsigned_v<T>, "bfe of a signed number repeats its sign");
    return T(shr<T>(x, T(from & 255)) & (shl<T>(T(1), T(length & 255)) - 1));
}
PTX T prmt(T x, T y, T selected) {
    T all = 0;
    for (int i = 0; i < 4; i++) {
        const T which = selected >> 4 * i & 15;
        T byte = T((u64(y) << 32 | x) >> 8 * (which & 7)) & 255;
        if (which & 8) byte = byte & 128 ? 255 : 0;
        all |= byte << 8 * i;
    }
    return all;
}

// ---- comparisons ----------------------------------------------------------------------------------------------------
// If an operand is NaN, the comparisons whose names end in u are true, and the others (except setp_nan) are false.
PTX bool setp_eq(T x, T y) { return x == y; }
PTX bool setp_ne(T x, T y) {
    if constexpr (std::is_floating_point_v<T>)
        return x < y || x > y;
    else
        return x != y;
}
PTX bool setp_lt(T x, T y) { return x < y; }
PTX bool setp_le(T x, T y) { return x <= y; }
PTX bool setp_gt(T x, T y) { return x > y; }
PTX bool setp_ge(T x, T y) { return x >= y; }
PTX bool setp_equ(T x, T y) { return !setp_ne<T>(x, y); }
PTX bool setp_neu(T x, T y) { return !(x == y); }
PTX bool setp_ltu(T x, T y) { return !(x >= y); }
PTX bool setp_leu(T x, T y) { return !(x > y); }
PTX bool setp_gtu(T x, T y) { return !(x <= y); }
PTX bool setp_geu(T x, T y) { return !(x < y); }
PTX bool setp_nan(T x, T y) { return x != x || y != y; }
PTX bool setp_num(T x, T y) { return !setp_nan<T>(x, y); }
PTX T selp(T x, T y, bool first) { return first ? x : y; }

// ---- conversions ----------------------------------------------------------------------------------------------------
// Conversions between integers, from an integer to a float, and between floats. The language converts in the same way,
// and rounds floats to the nearest.
template <class D, class S>
inline __attribute__((always_inline)) D cvt(S x) {
    static_assert(std::is_integral_v<S> || std::is_floating_point_v<D>,
                  "cvt of a float to an integer names a rounding");
    return D(x);
}
// Converts a whole number. If D is an integer type, a number beyond the limits of D becomes the nearest limit, and NaN
// becomes 0. If D is a float type, the result is the whole number as a float.
template <class D, class S>
inline D cvt_whole(S whole) {
    if constexpr (std::is_floating_point_v<D>)
        return D(whole);
    else if (whole != whole)
        return 0;
    const f64 low = f64(std::numeric_limits<D>::min()), high = f64(std::numeric_limits<D>::max());
    return whole <= low ? std::numeric_limits<D>::min() : whole >= high ? std::numeric_limits<D>::max() : D(whole);
}
#define ROUNDED(name, rounded)                          \
    template <class D, class S>                         \
    inline __attribute__((always_inline)) D name(S x) { \
        return cvt_whole<D, S>(rounded(x));             \
    }
ROUNDED(cvt_rni, std::nearbyint)
ROUNDED(cvt_rzi, std::trunc)
ROUNDED(cvt_rmi, std::floor)
ROUNDED(cvt_rpi, std::ceil)
#undef ROUNDED

// Rounds two numbers to bf16. The first one becomes the upper half of the result.
inline u32 cvt_bf16x2(f32 high, f32 low) { return u32(bfloat16(high).bits) << 16 | u32(bfloat16(low).bits); }

// ---- warps ----------------------------------------------------------------------------------------------------------
// Bits 8 to 12 of `clamp` are 32 - width, for the `width` of CUDA's shuffles. The low bits of `clamp` are ignored,
// because they follow from the width: they are the last lane.
inline u32 shfl(emulator::Exchange kind, u32 x, u32 by, u32 clamp, u32 mask, bool& got, const char* file, int line) {
    got = true;
    const int width = 32 - int(clamp >> 8 & 31);
    return u32(emulator::meet_warp(kind, mask, x, int(by & 31), width, "shfl.sync", {file, line}));
}
inline u32 shfl_bfly(u32 x, u32 by, u32 clamp, u32 mask, bool& got, const char* file, int line) {
    return shfl(emulator::Exchange::across, x, by, clamp, mask, got, file, line);
}
inline u32 shfl_up(u32 x, u32 by, u32 clamp, u32 mask, bool& got, const char* file, int line) {
    return shfl(emulator::Exchange::up, x, by, clamp, mask, got, file, line);
}
inline u32 shfl_down(u32 x, u32 by, u32 clamp, u32 mask, bool& got, const char* file, int line) {
    return shfl(emulator::Exchange::down, x, by, clamp, mask, got, file, line);
}
inline u32 shfl_idx(u32 x, u32 by, u32 clamp, u32 mask, bool& got, const char* file, int line) {
    return shfl(emulator::Exchange::lane, x, by, clamp, mask, got, file, line);
}
inline void mma_m16n8k16(const u32 (&a)[4], const u32 (&b)[2], const f32 (&c)[4], const char* file, int line, f32& d0,
                         f32& d1, f32& d2, f32& d3) {
    f32 d[4] = {c[0], c[1], c[2], c[3]};
    emulator::multiply_fragments(d, a, b, file, line);
    d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
}

// Loads four matrices of 8 rows of 16 bytes. Lane 8i + j passes the address of row j of matrix i.
template <bool transposed>
inline void ldmatrix_x4(u32 address, const char* file, int line, u32& d0, u32& d1, u32& d2, u32& d3) {
    shared(address, 16);
    const u32 g = u32(emulator::running->lane) / 4, t = u32(emulator::running->lane) % 4;
    u32* const to[4] = {&d0, &d1, &d2, &d3};
    u32 got[4];
    bool ignored;
    for (u32 i = 0; i < 4; i++) {
        const u32 first = shfl_idx(address, 8 * i + (transposed ? 2 * t : g), 31, 0xffffffffu, ignored, file, line);
        if (transposed) {
            const u32 second = shfl_idx(address, 8 * i + 2 * t + 1, 31, 0xffffffffu, ignored, file, line);
            u16 low, high;
            load<u16>(shared(first + 2 * g, 2), low), load<u16>(shared(second + 2 * g, 2), high);
            got[i] = u32(low) | u32(high) << 16;
        } else {
            load<u32>(shared(first + 4 * t, 4), got[i]);
        }
    }
    for (int i = 0; i < 4; i++) *to[i] = got[i];
}

// ---- asynchronous copies --------------------------------------------------------------------------------------------
struct Copy {
    char* to;
    const char* from;
    u32 bytes;  // number of bytes to copy; the rest of the 16 bytes becomes 0
};
// Notes a copy of the running thread. Returns true if its bytes arrive at once, which is chosen pseudo-randomly.
bool begin_copy(const Copy& copy);
bool end_copy(Copy& copy);  // takes a copy that the thread has not waited for; false if there is none
inline void copy(const Copy& c) {
    for (u32 i = 0; i < 16; i += 4) store<u32>(c.to + i, i < c.bytes ? *reinterpret_cast<const u32*>(c.from + i) : 0);
}
// The bytes arrive at once or when the thread waits. Until then, the 16 bytes at `to` are NaN. Writing NaN and writing
// the bytes both count as writes of this thread. Another thread may therefore access the bytes only behind a barrier
// after the wait.
inline void cp_async(char* to, u64 from, u32 bytes) {
    const Copy c{to, bytes ? global(from, 16) : nullptr, bytes};
    if (begin_copy(c))
        copy(c);
    else
        for (u32 i = 0; i < 16; i += 4) store<u32>(to + i, 0xffffffffu);
}
inline void cp_async_wait_all() {
    for (Copy c; end_copy(c);) copy(c);
}

#undef PTX

}  // namespace masquerade::ptx
