// SPDX-License-Identifier: MIT
#include "engine/train/adamw.h"

#include <cmath>

#include "engine/tensor/numbers.h"

namespace masquerade {

AdamW::AdamW(Parameters& parameters, const AdamWRule& rule) : parameters_(parameters), rule_(rule) {
    std::size_t bytes = std::size_t(parameters.length()) * bytes_of(parameters.dtype());
    m_ = Buffer::zeros(bytes, parameters.device());
    v_ = Buffer::zeros(bytes, parameters.device());
    small_ = Buffer(4 * bytes_of(parameters.dtype()), parameters.device());
}

void AdamW::update(std::int64_t t, double learning_rate) {
    DType type = parameters_.dtype();
    Device device = parameters_.device();
    const View norm = norm_view();
    View control{static_cast<char*>(small_.data()) + bytes_of(type), type, device, {3}, "control"};
    double numbers[3] = {learning_rate, 1 / (1 - std::pow(rule_.beta1, double(t))),
                         1 / (1 - std::pow(rule_.beta2, double(t)))};
    write_numbers(control, numbers);
    global_norm(parameters_.gradients(), norm);
    auto update = [&](View (Parameters::*part)(const View&) const, const AdamWRule& rule, const View& rounded) {
        auto of = [&](const View& all) { return (parameters_.*part)(all); };
        adamw(of(parameters_.values()), of(parameters_.gradients()), of(first_moment()), of(second_moment()), norm,
              control, rule, rounded);
    };
    AdamWRule without_decay = rule_;
    without_decay.decay = 0;
    update(&Parameters::matrices, rule_, parameters_.rounded());
    update(&Parameters::vectors, without_decay, {});
}

View AdamW::norm_view() const {
    return View{small_.data(), parameters_.dtype(), parameters_.device(), {1}, "norm"};
}

double AdamW::norm() const { return OnHost(norm_view())[0]; }

}  // namespace masquerade
