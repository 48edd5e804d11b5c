// SPDX-License-Identifier: MIT
// The result of a measurement: one row for each piece of work, ours and the peer's.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace masquerade {

struct Row {
    std::string key, label;          // for --json; for people, at most 22 letters
    double bytes = 0, tokens = 0;    // what a run treats; without bytes the table shows milliseconds
    std::vector<double> ours, peer;  // seconds of each run
};

// At most 80 columns.
std::string table_head(bool with_peer);
std::string table_line(const Row& row);

nlohmann::ordered_json json_of(const Row& row);

}  // namespace masquerade
