// SPDX-License-Identifier: MIT
// What measure_training found, for people: at most 80 columns.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace masquerade {

// One mark: what it is, a table of one row, memory, the parts of a step, the floor. compare.py puts rows and checks
// between them.
std::vector<std::string> train_report(const nlohmann::ordered_json& result);

}  // namespace masquerade
