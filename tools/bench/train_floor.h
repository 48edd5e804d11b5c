// SPDX-License-Identifier: MIT
// The floor of a training step: its matrix products, each alone, by the fastest product at hand.
#pragma once
#include <vector>

#include "tools/bench/train_profile.h"

namespace masquerade {

struct FloorProduct {
    ProductKind kind;
    double count;               // in a step
    double ours = 0, peer = 0;  // seconds of one, alone; 0: not measured
    double in_step = 0;         // the median of those of the steps
    std::vector<double> our_runs = {}, peer_runs = {};
    void settle();  // ours and peer become the medians of the runs
    double fastest() const { return peer > 0 && (ours == 0 || peer < ours) ? peer : ours; }
};

struct Floor {
    std::vector<FloorProduct> products;
    double attention = 0;  // multiply-adds of attention, which are no products of their own

    double multiply_adds() const;     // of the products
    double products_seconds() const;  // of a step
    double best_rate() const;         // multiply-adds a second of the fastest product
    // Attention's multiply-adds are counted at the best rate.
    double attention_seconds() const { return attention / best_rate(); }
    double seconds() const { return products_seconds() + attention_seconds(); }
};

// The products of a profile, not timed yet. On a GPU, where it is not the shapes that are asked about but how
// well the device is used: the step's multiply-adds as so many products of side x side x side, in each type
// that has any.
std::vector<FloorProduct> floor_products(const StepProfile& profile, std::int64_t side);

// A run of one product, found as those of the steps are that it is held against: the mean of as many as fill
// `budget` seconds, after one that is not counted, so that it meets the machine as it is.
// By gemm() on the CPU, by linear_forward on a GPU, which has the order NT and does not add.
double seconds_alone(const ProductKind& kind, double budget, Device device = Device::cpu);

}  // namespace masquerade
