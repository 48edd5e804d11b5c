// SPDX-License-Identifier: MIT
#pragma once
#include <chrono>

namespace masquerade {

// Returns the seconds since a fixed time in the past. Setting the time of the computer does not change this clock.
inline double steady_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace masquerade
