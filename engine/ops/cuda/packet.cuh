// SPDX-License-Identifier: MIT
// Memory access by packets of 16 bytes, which are four f32 or eight bf16 numbers. A thread reads or writes a packet
// with one instruction.
#pragma once
#include <cstdint>

#include "engine/math/scalar.h"
#include "engine/ops/cuda/kernel.cuh"

namespace masquerade::DEVICE {

struct alignas(16) Packet {
    std::uint32_t words[4];
};
template <class T>
constexpr int per_packet = 16 / int(sizeof(T));

HD bool is_aligned(const void* address, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}
// Returns true if every row of a matrix begins at a multiple of 16 bytes. The rows begin `step` numbers apart.
template <class T>
bool rows_in_packets(const T* data, std::int64_t step) {
    return step % per_packet<T> == 0 && is_aligned(data, sizeof(Packet));
}

// packet_at() reads a Packet, and store_packet() writes one. P may also be another struct of 32-bit words. The address
// must be a multiple of alignof(P).
template <class P = Packet>
HD P packet_at(const void* from) {
#ifdef CUDA_EMULATED
    emulator::expect_aligned(from, alignof(P));
    P packet;
    __builtin_memcpy(&packet, from, sizeof packet);
    return packet;
#else
    return *static_cast<const P*>(from);
#endif
}
template <class P>
HD void store_packet(void* to, const P& packet) {
#ifdef CUDA_EMULATED
    emulator::expect_aligned(to, alignof(P));
    __builtin_memcpy(to, &packet, sizeof packet);
#else
    *static_cast<P*>(to) = packet;
#endif
}
template <class T>
__device__ T number_of(const Packet& packet, int i) {
    if constexpr (sizeof(T) == 4) {
        return float_of(packet.words[i]);
    } else {
        T x;
        x.bits = std::uint16_t(packet.words[i / 2] >> i % 2 * 16);
        return x;
    }
}
template <class T>
__device__ void set_number(Packet& packet, int i, T x) {
    if constexpr (sizeof(T) == 4)
        packet.words[i] = bits_of(x);
    else
        packet.words[i / 2] |= std::uint32_t(x.bits) << i % 2 * 16;
}

// Rounds two numbers to bf16, and returns both in one word, with `low` in the lower half. On a GPU, every NaN becomes
// the NaN with the bits 0x7fff.
HD std::uint32_t two_rounded(float low, float high) {
#ifdef __CUDA_ARCH__
    std::uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
#else
    return std::uint32_t(bfloat16(low).bits) | std::uint32_t(bfloat16(high).bits) << 16;
#endif
}

// read_numbers() reads n numbers as float, and write_numbers() writes n numbers. n is 1 or fills whole packets. If n is
// not 1, the address must be a multiple of 16 bytes.
template <class T, int n>
__device__ void read_numbers(const T* from, float (&to)[n]) {
    static_assert(n == 1 || n % per_packet<T> == 0, "one number, or whole packets");
    if constexpr (n == 1) {
        to[0] = float(from[0]);
    } else {
#pragma unroll
        for (int i = 0; i < n; i += per_packet<T>) {
            const Packet packet = packet_at(from + i);
#pragma unroll
            for (int k = 0; k < per_packet<T>; k++) to[i + k] = float(number_of<T>(packet, k));
        }
    }
}
template <class T, int n>
__device__ void write_numbers(T* to, const float (&from)[n]) {
    static_assert(n == 1 || n % per_packet<T> == 0, "one number, or whole packets");
    if constexpr (n == 1) {
        to[0] = T(from[0]);
    } else {
#pragma unroll
        for (int i = 0; i < n; i += per_packet<T>) {
            Packet packet;
#pragma unroll
            for (int k = 0; k < 4; k++) {
                if constexpr (sizeof(T) == 4)
                    packet.words[k] = bits_of(from[i + k]);
                else
                    packet.words[k] = two_rounded(from[i + 2 * k], from[i + 2 * k + 1]);
            }
            store_packet(to + i, packet);
        }
    }
}

}  // namespace masquerade::DEVICE
