// SPDX-License-Identifier: MIT
// Measures one mark in one precision; the result as JSON. Another program may train the same in turns.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>

#include "tools/bench/train_marks.h"

namespace masquerade {

struct TrainMeasurement {
    TrainMark mark;
    DType storage = DType::f32;
    Device device = Device::cpu;
    std::uint64_t seed = 1;
    int repeats = 5;
    bool graph = true, deterministic = false;  // on a GPU: as ./train has them
    // Seconds of a run of steps, of the profile, of a run of one product of the floor.
    double burst_seconds = 1, profile_seconds = 1.5, product_seconds = 0.06;
    std::int64_t floor_side = 8192;  // of the products that tell how fast a GPU is
    // Takes what is known while more is measured; "complete" is false there.
    std::function<void(const nlohmann::ordered_json&)> keep = [](const nlohmann::ordered_json&) {};
    // Takes what another program must know to train the same, and what is known of ours.
    std::function<void(const nlohmann::ordered_json&)> start = [](const nlohmann::ordered_json&) {};
    // The other program's turn; null, or "products": the seconds of each product of the floor, null where it has none.
    std::function<nlohmann::ordered_json()> turn = [] { return nlohmann::ordered_json(); };
};

// On the CPU meant for a process of its own. Where it is stopped it returns what is there, "complete" false.
nlohmann::ordered_json measure_training(const TrainMeasurement& what);

// For people, in 80 columns: what the mark is, a table of one row, memory, the parts of a step, the floor. compare.py puts
// rows and checks between them.
std::vector<std::string> train_report(const nlohmann::ordered_json& result);

}  // namespace masquerade
