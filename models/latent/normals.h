// SPDX-License-Identifier: MIT
#pragma once
#include "engine/base/random.h"
#include "input/lists.h"

namespace masquerade {

// Sets `to` to `count` standard normal numbers. The random bits of stream.at(a, b, block) give four numbers; the next
// four come from block + 1, and so on. a and b identify what the numbers are for, for example a document and a layer.
void set_normals(float* to, std::size_t count, const Stream& stream, std::uint32_t a, std::uint32_t b,
                 std::uint32_t block = 0);

// Returns the numbers of set_normals().
Numbers normals(const Stream& stream, std::uint32_t a, std::uint32_t b, std::size_t count, std::uint32_t block = 0);

}  // namespace masquerade
