// SPDX-License-Identifier: MIT
// What the fuzz target offers to its driver.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace masquerade::fuzz {

// The first byte of an input picks the tokenizer, the second one the frame of a batch; the rest is text.
constexpr std::size_t header = 2;
std::size_t tokenizer_count();

// The first property of the tokenizer that does not hold for an input, with what was found; empty: all hold.
std::string broken_property(const std::uint8_t* data, std::size_t size);

struct Counts;  // check.h
const Counts& counts();

}  // namespace masquerade::fuzz
