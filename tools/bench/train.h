// SPDX-License-Identifier: MIT
// Measures full training steps of one mark in one precision.
#pragma once
#include "tools/bench/bench.h"
#include "tools/bench/train_marks.h"

namespace masquerade {

struct TrainWork {
    TrainMark mark;
    DType storage = DType::f32;
    bool graph = true, deterministic = false;  // on a GPU: as ./train has them
    // Seconds of a run of steps, of the profile, of a run of the large product.
    double burst_seconds = 1, profile_seconds = 1.5, product_seconds = 0.1;
    std::int64_t side = 2048;  // of the product of side x side x side that tells how fast the device is
};

void measure_training(Bench& bench, const TrainWork& work);

}  // namespace masquerade
