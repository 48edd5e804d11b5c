// SPDX-License-Identifier: MIT
#include "engine/train/part_sum.h"

#include "engine/ops/ops.h"
#include "engine/tensor/copy.h"

namespace masquerade {
namespace {

double sum_of(const double* parts, std::size_t n) {
    if (n == 1) return parts[0];
    std::size_t h = 1;
    while (2 * h < n) h *= 2;
    return sum_of(parts, h) + sum_of(parts + h, n - h);
}

}  // namespace

double sum_of_parts(const std::vector<double>& parts) { return sum_of(parts.data(), parts.size()); }

void GradientSum::add_to_gradients(const Buffer& sum) const {
    const View partial = parameters_.flat(sum, "partial sum"), gradients = parameters_.gradients();
    for (const auto trained : {&Parameters::matrices, &Parameters::vectors})
        add_backward((parameters_.*trained)(partial), {(parameters_.*trained)(gradients), true}, {});
}

// Works like adding 1 to a binary counter: sums_[k] is bit k. As long as the next bit is 1, its sum is added to the
// gradients. It has as many parts as the gradients have by now, and these are the parts just before them.
void GradientSum::add(bool last) {
    std::size_t k = 0;
    for (; parts_ >> k & 1; k++) add_to_gradients(sums_[k]);
    if (last) {
        for (; parts_ >> k; k++)
            if (parts_ >> k & 1) add_to_gradients(sums_[k]);
        parts_ = 0;
        return;
    }
    if (k == sums_.size()) sums_.emplace_back(parameters_.gradients().bytes(), parameters_.device());
    copy(parameters_.gradients(), parameters_.flat(sums_[k], "partial sum"));
    parts_++;
}

std::size_t GradientSum::bytes() const { return sums_.size() * parameters_.gradients().bytes(); }

}  // namespace masquerade
