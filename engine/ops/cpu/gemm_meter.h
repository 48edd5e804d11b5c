// SPDX-License-Identifier: MIT
// The facts that a measurement gets about every matrix product. Without a meter a product costs a test of a pointer.
#pragma once
#include "engine/ops/cpu/gemm.h"

namespace masquerade {

struct GemmCall {
    std::int64_t m, n, k;
    Factor a, b;
    Product c;
    double seconds;
    bool alone;  // all threads worked on it; else it was part of a piece, and the others did other things
};

struct GemmMeter {
    virtual ~GemmMeter() = default;
    // Called by the thread that asked for the product: by several threads at once where pieces of an op hold products.
    virtual void note(const GemmCall& call) = 0;
};

// Set and taken back between ops alone.
inline GemmMeter* gemm_meter = nullptr;

}  // namespace masquerade
