// SPDX-License-Identifier: MIT
// Sums over the parts of a batch. Floating-point sums depend on their order, so the order is fixed: the sum of n parts
// is the sum of the first h parts plus the sum of the other n - h parts, where h is the largest power of 2 below n.
// Both sums are computed recursively. The result therefore depends only on the parts and their number, and not on who
// computes which of these sums.
#pragma once
#include <vector>

#include "engine/nn/parameters.h"

namespace masquerade {

// Returns the sum of the numbers, which must not be empty.
double sum_of_parts(const std::vector<double>& parts);

// The sum of the gradients of all parts. At most log2(n) partial sums, rounded up, are kept in memory.
class GradientSum {
  public:
    explicit GradientSum(Parameters& parameters) : parameters_(parameters) {}
    // Call add() after the backward of each part, with `last` = true after the last part. The gradient of the part is
    // Parameters::gradients(). After the last part, add() stores the sum over all parts there, and the next call begins
    // a new sum.
    void add(bool last);
    std::size_t bytes() const;  // memory of the partial sums

  private:
    void add_to_gradients(const Buffer& sum) const;

    Parameters& parameters_;
    std::vector<Buffer> sums_;  // sums_[k] is a sum of 2^k parts; it is in use if bit k of parts_ is 1
    std::uint32_t parts_ = 0;   // number of parts that have been added
};

}  // namespace masquerade
