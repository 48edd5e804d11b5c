// SPDX-License-Identifier: MIT
// A random order. For a few of many numbers there is `drawn` (random.h).
#pragma once
#include <utility>

#include "engine/base/random.h"

namespace masquerade {

// Fisher and Yates, from the last place down.
template <class T>
void shuffle(std::vector<T>& all, Sequence& random) {
    for (std::size_t i = all.size(); i > 1; i--) std::swap(all[i - 1], all[random.below(std::uint32_t(i))]);
}

}  // namespace masquerade
