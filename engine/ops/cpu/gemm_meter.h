// SPDX-License-Identifier: MIT
// What a measurement learns of every matrix product. Without a meter a product costs a test of a pointer.
#pragma once
#include <chrono>

#include "engine/ops/cpu/gemm.h"
#include "engine/ops/cpu/parallel.h"

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
    // By the thread that asked for the product: several at once where pieces of an op hold products.
    virtual void note(const GemmCall& call) = 0;
};

// Set and taken back between ops alone.
inline GemmMeter* gemm_meter = nullptr;

// Lives as long as the product it measures.
class MeteredGemm {
    using Clock = std::chrono::steady_clock;

  public:
    MeteredGemm(std::int64_t m, std::int64_t n, std::int64_t k, const Factor& a, const Factor& b,
                const Product& c)
        : m_(m), n_(n), k_(k), a_(a), b_(b), c_(c) {
        if (gemm_meter) start_ = Clock::now();
    }
    ~MeteredGemm() {
        if (!gemm_meter) return;
        double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
        gemm_meter->note({m_, n_, k_, a_, b_, c_, seconds, !detail::in_piece()});
    }
    MeteredGemm(const MeteredGemm&) = delete;

  private:
    std::int64_t m_, n_, k_;
    const Factor &a_, &b_;
    const Product& c_;
    Clock::time_point start_;
};

}  // namespace masquerade
