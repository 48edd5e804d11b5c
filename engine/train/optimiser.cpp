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

const std::vector<OptimiserKind>& optimiser_kinds() {
    static const std::vector<OptimiserKind> all = {{"adamw", make_adamw}, {"apollo", make_apollo}};
    return all;
}

std::unique_ptr<Optimiser> make_optimiser(Parameters& parameters, const OptimiserOptions& options) {
    return find_named(optimiser_kinds(), options.optimiser, "optimiser").make(parameters, options);
}

}  // namespace masquerade
