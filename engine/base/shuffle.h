// SPDX-License-Identifier: MIT
// Shuffles a vector. To draw only a few of many numbers, use drawn() (random.h).
#pragma once
#include <utility>

#include "engine/base/random.h"

namespace masquerade {

// Puts the elements into random order, by a Fisher-Yates shuffle from the last element to the first.
template <class T>
void shuffle(std::vector<T>& all, Sequence& random) {
    for (std::size_t i = all.size(); i > 1; i--) std::swap(all[i - 1], all[random.below(std::uint32_t(i))]);
}

}  // namespace masquerade
