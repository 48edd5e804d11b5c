// SPDX-License-Identifier: MIT
#include "engine/math/point.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

constexpr std::int64_t at_once = 1024;

struct Parts {};

// One parameter tensor and the state of its optimiser, named as in apollo_point() (math/point.h): parameters p,
// gradients g, moving averages m of the gradients, the diagonal b of the approximate Hessian, and the update directions
// d. Row k of parts (blocks + 1, 2) contains the two sums of SumBlock for block k; the last row contains the result of
// SumTensor.
template <class A>
struct Tensor {
    A* p;
    const A* g;
    A *m, *b, *d, *parts;
    const A *norm, *control;
    A eps, decay, clip;
    std::int64_t count, blocks;
    bfloat16* rounded;  // receives the parameters p rounded to bf16; may be null
    HD int size(std::int64_t block) const {
        const std::int64_t left = count - block * at_once;
        return int(left < at_once ? left : at_once);
    }
    HD A scale() const { return real_of(clip) > 0 && real_of(*norm) > real_of(clip) ? clip / *norm : A(1); }
    HD A moved(A scale, std::int64_t i) const { return g[i] * scale + decay * p[i] - m[i]; }
};

// Computes two sums over one block of parameters:
//     parts[2 block] = sum d^4,  parts[2 block + 1] = sum (alpha (g - m) + b d) d
// Here d is the direction of the previous step, b is the diagonal of the approximate Hessian, and g is the clipped
// gradient plus decay * p. m is the moving average of g before this step; this step adds alpha (g - m) to m.
template <class A>
struct SumBlock {
    Tensor<A> x;
    HD void operator()(Lanes lanes, std::int64_t block) const {
        const A scale = x.scale(), alpha = x.control[1];
        const std::int64_t begin = block * at_once;
        const A* d = x.d + begin;
        const Two<A> two = sums(
            lanes, x.size(block), [&](int i) { return d[i] * d[i] * (d[i] * d[i]); },
            [&](int i) { return (alpha * x.moved(scale, begin + i) + x.b[begin + i] * d[i]) * d[i]; });
        if (first(lanes)) x.parts[2 * block] = two.first, x.parts[2 * block + 1] = two.second;
    }
};

// Adds up the sums of all blocks, and stores in parts[2 blocks] the factor `change` of the step b += change d^2
// (apollo_change() in math/point.h).
template <class A>
struct SumTensor {
    Tensor<A> x;
    HD void operator()(Lanes lanes, std::int64_t) const {
        const Two<A> two = sums(
            lanes, int(x.blocks), [&](int k) { return x.parts[2 * k]; }, [&](int k) { return x.parts[2 * k + 1]; });
        if (first(lanes)) x.parts[2 * x.blocks] = apollo_change(two.first, two.second, x.eps);
    }
};

template <class A>
struct Update {
    Tensor<A> x;
    HD void operator()(Lanes lanes, std::int64_t block) const {
        const A scale = x.scale(), rate = x.control[0], alpha = x.control[1], change = x.parts[2 * x.blocks];
        const std::int64_t begin = block * at_once;
        A *p = x.p + begin, *m = x.m + begin, *b = x.b + begin, *d = x.d + begin;
        each(lanes, x.size(block),
             [&](int i) { apollo_point(rate, alpha, change, x.moved(scale, begin + i), p[i], m[i], b[i], d[i]); });
        if constexpr (std::is_same_v<A, float>)
            if (x.rounded) each(lanes, x.size(block), [&](int i) { x.rounded[begin + i] = bfloat16(p[i]); });
    }
};

}  // namespace

void apollo(View p, View g, View m, View b, View d, View norm, View control, OptimiserRule rule, View rounded) {
    if (rounded.data) expect_shape("apollo", "rounded", rounded, p.shape, DType::bf16);
    for_latent(p, [&]<class A>(A) {
        const std::int64_t blocks = (p.count() + at_once - 1) / at_once;
        const Tensor<A> x{p.as<A>(),    g.as<A>(),
                          m.as<A>(),    b.as<A>(),
                          d.as<A>(),    workspace<Parts, A>(2 * blocks + 2),
                          norm.as<A>(), control.as<A>(),
                          A(rule.eps),  A(rule.decay),
                          A(rule.clip), p.count(),
                          blocks,       static_cast<bfloat16*>(rounded.data)};
        // If there is only one block, a single CUDA kernel can run all three stages.
        if (blocks == 1) return for_each_row(1, SumBlock<A>{x}, SumTensor<A>{x}, Update<A>{x});
        for_each_row(blocks, SumBlock<A>{x});
        for_each_row(1, SumTensor<A>{x});
        for_each_row(blocks, Update<A>{x});
    });
}

}  // namespace masquerade::DEVICE
