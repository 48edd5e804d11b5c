// SPDX-License-Identifier: MIT
#include "engine/train/adamw.h"

#include <cmath>

namespace masquerade {

void AdamW::update(std::int64_t t, double learning_rate) {
    const View numbers = control(
        {learning_rate, 1 / (1 - std::pow(rule_.beta1, double(t))), 1 / (1 - std::pow(rule_.beta2, double(t)))});
    global_norm(parameters_.gradients(), norm_view());
    auto update = [&](View (Parameters::*part)(const View&) const, const OptimiserRule& rule) {
        auto of = [&](const View& all) { return all ? (parameters_.*part)(all) : View(); };
        adamw(of(parameters_.values()), of(parameters_.gradients()), of(state(0)), of(state(1)), norm_view(), numbers,
              rule, of(parameters_.rounded()));
    };
    OptimiserRule without_decay = rule_;
    without_decay.decay = 0;
    update(&Parameters::matrices, rule_);
    update(&Parameters::vectors, without_decay);
}

std::unique_ptr<Optimiser> make_adamw(Parameters& parameters, const OptimiserOptions& o) {
    return std::make_unique<AdamW>(parameters, o.rule(o.eps));
}

}  // namespace masquerade
