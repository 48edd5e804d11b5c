// SPDX-License-Identifier: MIT
#include "engine/train/adamw.h"

#include <cmath>

namespace masquerade {

void AdamW::update(std::int64_t t, double learning_rate) {
    const View numbers = control(
        {learning_rate, 1 / (1 - std::pow(rule_.beta1, double(t))), 1 / (1 - std::pow(rule_.beta2, double(t)))});
    global_norm(parameters_.gradients(), norm_view());
    auto update = [&](View (Parameters::*part)(const View&) const, const OptimiserRule& rule, const View& rounded) {
        auto of = [&](const View& all) { return (parameters_.*part)(all); };
        adamw(of(parameters_.values()), of(parameters_.gradients()), of(first_moment()), of(second_moment()),
              norm_view(), numbers, rule, rounded);
    };
    OptimiserRule without_decay = rule_;
    without_decay.decay = 0;
    update(&Parameters::matrices, rule_, parameters_.rounded());
    update(&Parameters::vectors, without_decay, {});
}

std::unique_ptr<Optimiser> make_adamw(Parameters& parameters, const OptimiserOptions& o) {
    return std::make_unique<AdamW>(parameters, o.rule(o.eps));
}

}  // namespace masquerade
