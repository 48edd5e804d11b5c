// SPDX-License-Identifier: MIT
#include "engine/train/optimiser.h"

#include "engine/base/named.h"
#include "engine/tensor/numbers.h"

namespace masquerade {

Optimiser::Optimiser(Parameters& parameters, std::vector<const char*> states)
    : parameters_(parameters), names_(std::move(states)) {
    const std::size_t number = bytes_of(parameters.dtype());
    for (std::size_t i = 0; i < names_.size(); i++)
        states_.push_back(Buffer::zeros(std::size_t(parameters.length()) * number, parameters.device()));
    small_ = Buffer(4 * number, parameters.device());
}

View Optimiser::norm_view() const {
    return View{small_.data(), parameters_.dtype(), parameters_.device(), {1}, "norm"};
}

View Optimiser::control(const std::vector<double>& numbers) {
    View to = norm_view();
    to.data = static_cast<char*>(to.data) + bytes_of(to.dtype);
    to.shape = {std::int64_t(numbers.size())};
    to.path = "control";
    write_numbers(to, numbers.data());
    return to;
}

double Optimiser::norm() const { return OnHost(norm_view())[0]; }

void OptimiserOptions::declare_numbers(Config& c) {
    c.add("clip", &clip, "largest global norm of the gradient; 0: no clipping", 0, 1e9);
    c.add("beta1", &beta1, "adamw: decay of the first moment; apollo: its only decay", 0, 0.999999);
    c.add("beta2", &beta2, "adamw: decay of the second moment", 0, 0.999999);
    c.add("eps", &eps, "adamw: epsilon", 1e-30, 1);
    c.add("apollo_eps", &apollo_eps, "apollo: epsilon", 1e-30, 1);
    c.add("weight_decay", &weight_decay, "weight decay of matrices; AdamW: decoupled, Apollo: added to the gradient", 0,
          10);
}

// make_NAME() is defined in NAME.cpp.
std::unique_ptr<Optimiser> make_adamw(Parameters& parameters, const OptimiserOptions& options);
std::unique_ptr<Optimiser> make_apollo(Parameters& parameters, const OptimiserOptions& options);

const std::vector<OptimiserKind>& optimiser_kinds() {
    static const std::vector<OptimiserKind> all = {{"adamw", make_adamw}, {"apollo", make_apollo}};
    return all;
}

std::unique_ptr<Optimiser> make_optimiser(Parameters& parameters, const OptimiserOptions& options) {
    return find_named(optimiser_kinds(), options.optimiser, "optimiser").make(parameters, options);
}

}  // namespace masquerade
