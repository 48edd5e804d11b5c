// SPDX-License-Identifier: MIT
// Numbers that change with the step: the learning rate and the weight of the KL term. Pure functions of the step.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace masquerade {

// Linear warm-up over `warmup` steps, the peak until `start`, then linear decay to `floor` times the peak at `steps`.
inline double learning_rate_at(std::int64_t step, double peak, std::int64_t warmup, std::int64_t start,
                               std::int64_t steps, double floor = 0.03) {
    double rise = warmup > 0 ? std::min(1.0, double(step + 1) / double(warmup)) : 1.0;
    double fall = step < start || steps <= start ? 1.0 : 1.0 - double(step - start) / double(steps - start);
    return peak * rise * std::max(floor, fall);
}

// beta of a Gaussian latent at a step of `steps`; 0 steps: the length of the run is not known yet, this is its start.
//   constant; linear: 0 to beta over the first half; cyclical: four cycles, each rising over its first half and then
//   flat (Fu et al. 2019, M = 4, R = 0.5)
inline double kl_weight_at(const std::string& kind, std::int64_t step, std::int64_t steps, double beta) {
    double done = steps > 0 ? std::min(1.0, double(step) / double(steps)) : 0.0;
    if (kind == "linear") return beta * std::min(1.0, 2 * done);
    if (kind == "cyclical") {
        double cycle = done >= 1.0 ? 1.0 : 4 * done - std::floor(4 * done);
        return beta * std::min(1.0, 2 * cycle);
    }
    return beta;
}

}  // namespace masquerade
