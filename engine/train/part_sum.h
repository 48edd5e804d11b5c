// SPDX-License-Identifier: MIT
// Sums over the parts of a batch. Floating-point sums depend on their order, so the order is fixed: the sum of n parts
// is the sum of the first h parts plus the sum of the other n - h parts, where h is the largest power of 2 below n.
// Both sums are computed recursively. The result therefore depends only on the parts and their number, and not on the
// processes that compute these sums.
#pragma once
#include <vector>

#include "engine/nn/parameters.h"

namespace masquerade {

// Returns the sum of the numbers, which must not be empty.
double sum_of_parts(const std::vector<double>& parts);

// The parts begin, begin + 1, ..., end - 1 of a batch.
struct PartRange {
    int begin = 0, end = 0;
    int count() const { return end - begin; }
    bool has(int part) const { return begin <= part && part < end; }
};
// Returns the parts that process `rank` of `count` computes of a batch of `parts` parts. The shares differ by at most
// one part, and process 0 always has a part.
PartRange share_of(int parts, int rank, int count);
// The sum of a batch of `parts` parts is computed from smaller sums, the nodes of a binary tree. Returns the largest
// nodes that need only the parts of `share`, from left to right.
std::vector<PartRange> nodes_within(const PartRange& share, int parts);

// The sum of the gradients of all parts, which this process or several processes together compute. This process keeps
// at most log2(n) partial sums in memory, rounded up, and one for each of nodes_within() but the last.
class GradientSum {
  public:
    explicit GradientSum(Parameters& parameters) : parameters_(parameters) {}
    // Call add() after the backward of each part of this process. The gradient of the part is Parameters::gradients().
    void add(int part, int parts);
    // Call finish() when all parts of this process have been added. Afterwards, Parameters::gradients() has the sum
    // over all parts, in every process. Several processes exchange their sums twice: first, each process receives one
    // slice of all sums, and adds them up; then, each process sends its slice of the result to all others. On a GPU,
    // the sums pass through the memory of the host, unless the processes can reach GPUs.
    void finish(int parts);
    std::size_t bytes() const;  // memory of the partial sums, and of those that other processes have sent

  private:
    void add_to_gradients(const Buffer& sum) const;
    void keep_in(std::vector<Buffer>& sums, std::size_t i) const;
    View trained(const Buffer& sum) const { return parameters_.trained(parameters_.flat(sum, "partial sum")); }

    Parameters& parameters_;
    std::vector<Buffer> sums_;   // sums_[k] is a sum of 2^k parts; it is in use if bit k of added_ is 1
    std::uint32_t added_ = 0;    // number of parts of the current node that have been added
    std::vector<Buffer> nodes_;  // the sum of each node of this process but the last, which is in the gradients
    Buffer received_;            // slices of the sums of other processes
};

}  // namespace masquerade
