// SPDX-License-Identifier: MIT
// Finds rows by their names, in tables such as those of attention kinds, objectives and tasks.
#pragma once
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace masquerade {

template <class Table>
std::vector<std::string> names_of(const Table& table) {
    std::vector<std::string> names;
    for (const auto& row : table) names.push_back(row.name);
    return names;
}

inline std::string joined(const std::vector<std::string>& words, const char* between = ", ") {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
    return all;
}

// Returns the row with this name. If there is none, throws BadUsage("there is no WHAT NAME OF; there are ...").
template <class Table>
const auto& find_named(const Table& table, const std::string& name, const char* what, const char* of = "") {
    for (const auto& row : table)
        if (row.name == name) return row;
    throw BadUsage(text("there is no ", what, " ", name, of, "; there are ", joined(names_of(table))));
}

}  // namespace masquerade
