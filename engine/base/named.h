// SPDX-License-Identifier: MIT
// Finds entries by name in tables such as attention_kinds().
#pragma once
#include <algorithm>
#include <iterator>
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

template <class List>
bool contains(const List& list, const std::string& word) {
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

inline std::string joined(const std::vector<std::string>& words, const char* between = ", ") {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
    return all;
}

// Returns the names with their descriptions: "adamw (AdamW), apollo (a quasi-Newton method)".
template <class Table>
std::string described(const Table& table) {
    std::vector<std::string> all;
    for (const auto& row : table) all.push_back(std::string(row.name) + " (" + row.what + ")");
    return joined(all);
}

// Returns the row of the table with this name. If there is none, throws BadUsage and lists the names of all rows. For
// example, if `what` is "objective", `name` is "x" and `of` is " of this model", the message is "there is no objective
// x of this model; there are lm, mlm".
template <class Table>
const auto& find_named(const Table& table, const std::string& name, const char* what, const char* of = "") {
    for (const auto& row : table)
        if (row.name == name) return row;
    throw BadUsage("there is no ", what, " ", name, of, "; there are ", joined(names_of(table)));
}

}  // namespace masquerade
