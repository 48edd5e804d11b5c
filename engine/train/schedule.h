// SPDX-License-Identifier: MIT
// The learning rate, the weight of the KL term and the noise of latents at a step of the run, as pure functions of the
// step.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace masquerade {

// Returns the learning rate, the product of `peak` and two factors. The first factor rises linearly to 1 over `warmup`
// steps. The second factor is 1 until step `start`, and then falls linearly towards 0 at step `steps`, but not below
// `floor`. If steps <= start, the second factor is always 1.
inline double learning_rate_at(std::int64_t step, double peak, std::int64_t warmup, std::int64_t start,
                               std::int64_t steps, double floor = 0.03) {
    double rise = warmup > 0 ? std::min(1.0, double(step + 1) / double(warmup)) : 1.0;
    double fall = step < start || steps <= start ? 1.0 : 1.0 - double(step - start) / double(steps - start);
    return peak * rise * std::max(floor, fall);
}

// Returns the weight of the KL term at a step of a schedule of `steps` steps. If the length of the schedule is not
// known yet (steps = 0), returns the weight at step 0. The kinds are:
//   constant   beta
//   linear     rises from 0 to beta over the first half of the schedule
//   cyclical   four cycles of equal length; in each cycle, rises from 0 to beta over the first half and stays at beta
//              in the second half (Fu et al. 2019, in their notation M = 4, R = 0.5)
inline double kl_weight_at(const std::string& kind, std::int64_t step, std::int64_t steps, double beta) {
    double done = steps > 0 ? std::min(1.0, double(step) / double(steps)) : 0.0;
    if (kind == "linear") return beta * std::min(1.0, 2 * done);
    if (kind == "cyclical") {
        double cycle = done >= 1.0 ? 1.0 : 4 * done - std::floor(4 * done);
        return beta * std::min(1.0, 2 * cycle);
    }
    return beta;
}

// Returns the share of their noise that latents have at a step of a schedule of `steps` steps: almost none up to the
// share `from` of the schedule, and all of it when the share `over` has passed since then. It is at least 0.01, because
// the derivative by a learned kappa has no limit at 0. If the length of the schedule is not known yet (steps = 0),
// returns the share at step 0.
inline double noise_share_at(double from, double over, std::int64_t step, std::int64_t steps) {
    constexpr double least = 0.01;
    const double done = steps > 0 ? double(step) / double(steps) : 0.0;
    if (done < from) return least;
    return over > 0 ? std::clamp((done - from) / over, least, 1.0) : 1.0;
}

}  // namespace masquerade
