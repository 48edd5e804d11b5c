// SPDX-License-Identifier: MIT
// The switch of a planted error. mutants.py writes `mutant(number)` into its copy of the sources, and includes this.
#pragma once
#include <cstdlib>

namespace mutant_choice {

// The number of the one error that is on, read once from the environment; 0 for none.
inline unsigned read_number() {
    const char* text = std::getenv("MASQUERADE_MUTANT");
    return text ? unsigned(std::strtoul(text, nullptr, 10)) : 0;
}
inline const unsigned number = read_number();

}  // namespace mutant_choice

// A constant expression keeps the right code: nothing is read while compiling. The kernels that run as fibers are
// watched at every access to memory; this one is not theirs.
__attribute__((no_sanitize("thread"))) static constexpr bool mutant(unsigned number) {
    return !__builtin_is_constant_evaluated() && mutant_choice::number == number;
}
