// SPDX-License-Identifier: MIT
#include "engine/math/point.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

#include <initializer_list>

namespace masquerade::DEVICE {
namespace {

constexpr std::int64_t at_once = 1024;

// Updates one block of parameters: `at_once` of them, or fewer in the last block.
template <class A>
struct Step {
    A* p;
    const A* g;
    A *m, *v;
    const A *norm, *control;
    A beta1, beta2, eps, decay, clip;
    std::int64_t count;
    bfloat16* rounded;  // receives the parameters p rounded to bf16; may be null
    HD AdamWFactors<A> factors() const {
        A scale = real_of(clip) > 0 && real_of(*norm) > real_of(clip) ? clip / *norm : A(1);
        return {scale, beta1, beta2, control[0], control[1], control[2], eps, decay};
    }
    HD void operator()(Lanes lanes, std::int64_t block) const {
        const AdamWFactors<A> all = factors();
        std::int64_t begin = block * at_once, left = count - begin;
        const int here = int(left < at_once ? left : at_once);
        each(lanes, here, [&](int i) { adamw_point(all, g[begin + i], p[begin + i], m[begin + i], v[begin + i]); });
        if constexpr (std::is_same_v<A, float>)
            if (rounded) each(lanes, here, [&](int i) { rounded[begin + i] = bfloat16(p[begin + i]); });
    }
};

#ifdef HAS_WARPS
// Like Step, but each lane (thread of a warp) reads, updates and writes `group` parameters at a time, with memory
// accesses of 16 bytes (packet.cuh). The addresses of all arrays must therefore be multiples of 16 bytes, which
// possible() checks.
struct PacketStep : Step<float> {
    static constexpr int group = per_packet<bfloat16>;
    bool possible() const {
        std::uintptr_t all = 0;
        for (const void* x : std::initializer_list<const void*>{p, g, m, v, rounded})
            all |= reinterpret_cast<std::uintptr_t>(x);
        return all % sizeof(Packet) == 0;
    }
    template <int n>
    __device__ void update(const AdamWFactors<float>& all, std::int64_t i) const {
        float of_g[n], of_p[n], of_m[n], of_v[n];
        read_numbers(g + i, of_g), read_numbers(p + i, of_p), read_numbers(m + i, of_m), read_numbers(v + i, of_v);
#pragma unroll
        for (int k = 0; k < n; k++) adamw_point(all, of_g[k], of_p[k], of_m[k], of_v[k]);
        write_numbers(p + i, of_p), write_numbers(m + i, of_m), write_numbers(v + i, of_v);
        if (rounded) write_numbers(rounded + i, of_p);
    }
    __device__ void operator()(WarpLanes lanes, std::int64_t block) const {
        const AdamWFactors<float> all = factors();
        const std::int64_t begin = block * at_once, end = begin + at_once < count ? begin + at_once : count;
        for (std::int64_t i = begin + lane_of(lanes) * group; i < end; i += 32 * group)
            if (i + group <= end)
                update<group>(all, i);
            else
#pragma unroll 1
                for (std::int64_t k = i; k < end; k++) update<1>(all, k);
    }
};
#endif

}  // namespace

void adamw(View p, View g, View m, View v, View norm, View control, OptimiserRule rule, View rounded) {
    if (rounded.data) expect_shape("adamw", "rounded", rounded, p.shape, DType::bf16);
    for_latent(p, [&]<class A>(A) {
        const Step<A> step{p.as<A>(),
                           g.as<A>(),
                           m.as<A>(),
                           v.as<A>(),
                           norm.as<A>(),
                           control.as<A>(),
                           A(rule.beta1),
                           A(rule.beta2),
                           A(rule.eps),
                           A(rule.decay),
                           A(rule.clip),
                           p.count(),
                           static_cast<bfloat16*>(rounded.data)};
        const std::int64_t blocks = (p.count() + at_once - 1) / at_once;
#ifdef HAS_WARPS
        if (const PacketStep packets{step}; packets.possible()) return for_each_row(blocks, packets);
#endif
        for_each_row(blocks, step);
    });
}

}  // namespace masquerade::DEVICE
