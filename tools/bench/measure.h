// SPDX-License-Identifier: MIT
// Measures how many seconds a function takes, and computes the median and the range of several measurements.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/tensor/copy.h"
#include "tools/program.h"

namespace masquerade {

struct Spread {
    double median, least, most;
};

// Returns the median, the smallest and the largest of one value or more. The median of an even number of values is the
// mean of the middle two.
inline Spread spread_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
}

// Returns the mean seconds of one call of work(), over as many calls as fill `budget` seconds. On a GPU, waits for the
// device only after every eight calls, because the GPU is idle after each wait until the next call reaches it.
template <class Work, class Clock = double (*)()>
double seconds_of(Work work, double budget = 0.2, Device device = Device::cpu, Clock now = steady_seconds) {
    const int together = device == Device::cpu ? 1 : 8;
    wait_for(device);
    const double start = now();
    for (int calls = together;; calls += together) {
        for (int i = 0; i < together; i++) work();
        wait_for(device);
        const double passed = now() - start;
        if (passed >= budget) return passed / calls;
    }
}

// Formats a number for a table: 1234, 312, 31.2, 3.12, 0.03.
inline std::string figures(double value) {
    return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

}  // namespace masquerade
