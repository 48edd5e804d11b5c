// SPDX-License-Identifier: MIT
// Measures one mark in one precision, with PyTorch in turns; the result as JSON.
#pragma once
#include <nlohmann/json.hpp>

#include "tools/bench/train_marks.h"

namespace masquerade {

struct TrainMeasurement {
    std::string mark;
    DType storage = DType::f32;
    std::uint64_t seed = 1;
    int repeats = 5;
    std::vector<std::string> pythons;  // none: no peer
    bool all_pythons = false;          // else the first that can train
    bool compiled = true;              // try torch.compile, too
};

// Meant for a process of its own. Where it is stopped it returns what is there, "complete" false.
nlohmann::ordered_json measure_training(const TrainMeasurement& what);

}  // namespace masquerade
