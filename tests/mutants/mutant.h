// SPDX-License-Identifier: MIT
// The switch that turns on a planted error. mutants.py writes `mutant(number)` into its copy of the sources, and
// includes this header.
#pragma once
#include <cstdlib>

namespace mutant_choice {

// Returns the number of the error that is turned on, from the environment; 0 if none is. It is read once.
inline unsigned read_number() {
    const char* text = std::getenv("MASQUERADE_MUTANT");
    return text ? unsigned(std::strtoul(text, nullptr, 10)) : 0;
}
inline const unsigned number = read_number();

}  // namespace mutant_choice

// In constant expressions, the correct code is used, because the environment cannot be read at compile time. The
// emulator watches every memory access of kernels; no_sanitize exempts this function from that.
__attribute__((no_sanitize("thread"))) static constexpr bool mutant(unsigned number) {
    return !__builtin_is_constant_evaluated() && mutant_choice::number == number;
}
