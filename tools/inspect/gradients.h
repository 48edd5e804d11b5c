// SPDX-License-Identifier: MIT
// ./inspect gradients. Both throw where a gradient is wrong, after all is printed.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/inspect/small_model.h"

namespace masquerade {

// A line for every tensor of every op whose name begins with one of `names`; without names, of every op.
void check_ops(const std::vector<std::string>& names);

// A line for every parameter of a small model: the gradient of its loss.
void check_model(const std::vector<std::string>& words, std::uint64_t seed);

}  // namespace masquerade
