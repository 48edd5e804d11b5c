// SPDX-License-Identifier: MIT
// ./inspect program.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace masquerade {

struct ProgramOptions {
    std::string dump;  // folder; empty: none
    bool time = false;
};

// One step of a small model: what the tape recorded, or the time that each op took.
void print_program(const std::vector<std::string>& words, const ProgramOptions& options, std::uint64_t seed);

}  // namespace masquerade
