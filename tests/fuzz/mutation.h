// SPDX-License-Identifier: MIT
// Files that are nearly right: a good one, changed in a few places.
#pragma once
#include <string>

#include "tests/fuzz/grammar.h"

namespace masquerade::fuzz {

// Bits and bytes, cuts, repeats, numbers, nesting, strings that hurt, and parts of `other`.
std::string damaged(Grammar& random, std::string bytes, const std::string& other);

}  // namespace masquerade::fuzz
