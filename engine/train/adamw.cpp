// SPDX-License-Identifier: MIT
#include "engine/train/adamw.h"

#include <cmath>
#include <cstring>

namespace masquerade {
namespace {

double read_number(const View& v) {
    switch (v.dtype) {
        case DType::f32: return double(*v.as<float>());
        case DType::f64: return *v.as<double>();
        default: return v.as<complex>()->real();
    }
}

void write_numbers(const View& v, const double* numbers) {
    for (std::int64_t i = 0; i < v.count(); i++) {
        if (v.dtype == DType::f32) v.as<float>()[i] = float(numbers[i]);
        else if (v.dtype == DType::f64) v.as<double>()[i] = numbers[i];
        else v.as<complex>()[i] = numbers[i];
    }
}

}  // namespace

AdamW::AdamW(Parameters& parameters, const AdamWRule& rule) : parameters_(parameters), rule_(rule) {
    std::size_t bytes = std::size_t(parameters.length()) * bytes_of(parameters.dtype());
    m_ = Buffer(bytes, parameters.device());
    v_ = Buffer(bytes, parameters.device());
    small_ = Buffer(4 * bytes_of(parameters.dtype()), parameters.device());
    std::memset(m_.data(), 0, bytes);
    std::memset(v_.data(), 0, bytes);
}

void AdamW::update(std::int64_t t, double learning_rate) {
    DType type = parameters_.dtype();
    Device device = parameters_.device();
    View norm{small_.data(), type, device, {1}, "norm"};
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

double AdamW::norm() const {
    return read_number(View{small_.data(), parameters_.dtype(), parameters_.device(), {1}, "norm"});
}

}  // namespace masquerade
