// SPDX-License-Identifier: MIT
#include "engine/base/random.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace masquerade {

double Sequence::normal() {
    const double radius = std::sqrt(-2 * std::log(uniform_double()));
    return radius * std::cos(6.283185307179586 * uniform_double());
}

std::vector<std::size_t> drawn(std::size_t n, std::size_t most, Sequence random) {
    std::vector<std::size_t> numbers;
    std::unordered_map<std::size_t, std::size_t> moved;  // the numbers of places that no longer have their own
    const auto at = [&](std::size_t place) {
        const auto found = moved.find(place);
        return found == moved.end() ? place : found->second;
    };
    for (std::size_t i = 0; i < std::min(n, most); i++) {
        const std::size_t other = i + random.below(std::uint32_t(n - i));
        numbers.push_back(at(other));
        moved[other] = at(i);
    }
    return numbers;
}

}  // namespace masquerade
