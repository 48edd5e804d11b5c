// SPDX-License-Identifier: MIT
// What measure_training found, for people: at most 80 columns.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace masquerade {

// One mark: the rows, the parts of a step, the floor.
std::string train_report(const nlohmann::ordered_json& result);

// A line for each mark; nothing for one that is not there whole.
std::string train_summary(const nlohmann::ordered_json& results);

}  // namespace masquerade
