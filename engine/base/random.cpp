// SPDX-License-Identifier: MIT
#include "engine/base/random.h"

#include <algorithm>
#include <numeric>

namespace masquerade {

std::vector<std::size_t> drawn(std::size_t n, std::size_t most, Sequence random) {
    std::vector<std::size_t> numbers(n);
    std::iota(numbers.begin(), numbers.end(), std::size_t(0));
    for (std::size_t i = 0; i < std::min(n, most); i++)
        std::swap(numbers[i], numbers[i + random.below(std::uint32_t(n - i))]);
    numbers.resize(std::min(n, most));
    return numbers;
}

}  // namespace masquerade
