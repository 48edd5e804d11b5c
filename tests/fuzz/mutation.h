// SPDX-License-Identifier: MIT
// Makes files that are nearly right: a good file with changes in a few places.
#pragma once
#include <string>

#include "tests/fuzz/grammar.h"

namespace masquerade::fuzz {

// Changes bits and bytes, cuts, repeats, replaces numbers, nests, and inserts troublesome strings and parts of `other`.
std::string damaged(Grammar& random, std::string bytes, const std::string& other);

}  // namespace masquerade::fuzz
