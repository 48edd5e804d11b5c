// SPDX-License-Identifier: MIT
// Measures one mark in one precision, with PyTorch in turns; the result as JSON.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>

#include "tools/bench/train_marks.h"
#include "tools/bench/train_variants.h"

namespace masquerade {

struct TrainMeasurement {
    TrainMark mark;
    DType storage = DType::f32;
    Device device = Device::cpu;
    std::uint64_t seed = 1;
    int repeats = 5;
    std::vector<std::string> pythons;          // none: no peer
    bool all_pythons = false;                  // else the first that can train
    bool compiled = true;                      // try torch.compile, too
    Variant variant;                           // of PyTorch; empty: the fastest is searched
    bool graph = true, deterministic = false;  // of ours, on a GPU: as ./train has them
    // Seconds of a run of steps, of the profile, of a run of one product of the floor.
    double burst_seconds = 1, profile_seconds = 1.5, product_seconds = 0.06;
    std::int64_t floor_side = 8192;  // of the products that tell how fast a GPU is
    // Takes what is known while more is measured; "complete" is false there.
    std::function<void(const nlohmann::ordered_json&)> keep = [](const nlohmann::ordered_json&) {};
};

// On the CPU meant for a process of its own; not on a GPU, which a process that was forked cannot use. Where
// it is stopped it returns what is there, "complete" false.
nlohmann::ordered_json measure_training(const TrainMeasurement& what);

}  // namespace masquerade
