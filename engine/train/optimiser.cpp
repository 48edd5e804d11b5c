// SPDX-License-Identifier: MIT
#include "engine/train/optimiser.h"

#include <cmath>

#include "engine/base/named.h"
#include "engine/tensor/copy.h"
#include "engine/tensor/numbers.h"

namespace masquerade {

Optimiser::Optimiser(Parameters& parameters, std::vector<const char*> states)
    : parameters_(parameters), names_(std::move(states)) {
    const std::size_t number = bytes_of(parameters.dtype());
    for (std::size_t i = 0; i < names_.size(); i++)
        states_.push_back(Buffer::zeros(std::size_t(parameters.length()) * number, parameters.device()));
    small_ = Buffer(6 * number, parameters.device());
}

View Optimiser::norm_view() const {
    return View{small_.data(), parameters_.dtype(), parameters_.device(), {1}, "norm"};
}

View Optimiser::written(int first, const std::vector<double>& numbers) {
    View to = part_of(norm_view(), first, {std::int64_t(numbers.size())});
    to.path = "control";
    write_numbers(to, numbers.data());
    return to;
}

double Optimiser::norm() const { return OnHost(norm_view())[0]; }

void Optimiser::start_average(double decay) {
    decay_ = decay;
    names_.push_back(average_of_weights);
    states_.push_back(Buffer::zeros(parameters_.values().bytes(), parameters_.device()));
    copy(parameters_.values(), state(states_.size() - 1));
}

// average += share (p - average), where p are the weights after update t and share = (1 - decay) / (1 - decay^t). After
// the first update, t = 1, the share is 1, so the initial weights are forgotten. The first call of
// weighted_sum_backward() adds -share * average to the average, and the second call adds share * p.
void Optimiser::average(std::int64_t t) {
    if (decay_ == 0) return;
    const double share = (1 - decay_) / (1 - std::pow(decay_, double(t)));
    const View less = written(4, {-share}), more = written(5, {share}), average = averaged_weights();
    weighted_sum_backward(less, average, {average, true});
    weighted_sum_backward(more, weights(), {average, true});
}

void Optimiser::exchange_average() {
    if (decay_ == 0) return;
    const Buffer held(weights().bytes(), parameters_.device());
    View between = weights();
    between.data = held.data();
    copy(weights(), between);
    copy(averaged_weights(), weights());
    copy(between, averaged_weights());
    parameters_.round();
}

void OptimiserOptions::declare_numbers(Config& c) {
    c.add("clip", &clip, "largest global norm of the gradient; 0: no clipping", 0, 1e9);
    c.add("beta1", &beta1, "adamw: decay of the first moment; apollo: decay of its moving average of gradients", 0,
          0.999999);
    c.add("beta2", &beta2, "adamw: decay of the second moment", 0, 0.999999);
    c.add("eps", &eps, "adamw: epsilon", 1e-30, 1);
    // (apollo_eps / 0.01)^2, the divisor of Apollo's first step, is more than 0 in float from 3e-25 on.
    c.add("apollo_eps", &apollo_eps, "apollo: epsilon", 3e-25, 1);
    c.add("weight_decay", &weight_decay, "weight decay of matrices; AdamW: decoupled, Apollo: added to the gradient", 0,
          10);
    c.add(
        "ema", &ema,
        "decay of a moving average of the weights, such as 0.999; all programs but ./train then use it; 0: no average",
        0, 0.999999);
}

// Each of these functions is defined in the file of its optimiser: make_adamw() in adamw.cpp, make_apollo() in
// apollo.cpp.
std::unique_ptr<Optimiser> make_adamw(Parameters& parameters, const OptimiserOptions& options);
std::unique_ptr<Optimiser> make_apollo(Parameters& parameters, const OptimiserOptions& options);

const std::vector<OptimiserKind>& optimiser_kinds() {
    static const std::vector<OptimiserKind> all = {{"adamw", "Loshchilov and Hutter 2019", make_adamw},
                                                   {"apollo", "a quasi-Newton method, Ma 2020", make_apollo}};
    return all;
}

std::unique_ptr<Optimiser> make_optimiser(Parameters& parameters, const OptimiserOptions& options) {
    std::unique_ptr<Optimiser> made =
        find_named(optimiser_kinds(), options.optimiser, "optimiser").make(parameters, options);
    if (options.ema > 0) made->start_average(options.ema);
    return made;
}

}  // namespace masquerade
