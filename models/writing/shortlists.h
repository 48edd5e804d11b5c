// SPDX-License-Identifier: MIT
// The best tokens of every row of a step. If the logits are on a device, the device chooses these tokens (op
// shortlist), so that the host receives a few numbers instead of all logits.
#pragma once
#include <vector>

#include "engine/tensor/buffer.h"
#include "engine/tensor/view.h"

namespace masquerade {

class Shortlists {
  public:
    // Prepares lists of the `width` best of V tokens for each of `rows` rows. Their logits are on `device`, which must
    // be the same in all calls. Allocates memory if these lists need more than all earlier lists.
    void prepare(int rows, int width, int V, Device device);
    // Computes the lists of logits (rows,V) on the device. The call can be a part of a captured graph.
    void compute(const View& logits);
    void read();  // copies the lists to the host, with one copy

    int width() const { return width_; }
    int parts() const { return parts_; }
    // The outputs of the op for a row: the logits of the best tokens, their ids, and the parts of the log-sum-exp.
    const float* best(int row) const { return numbers_.data() + std::int64_t(row) * width_; }
    const float* ids(int row) const { return best(rows_ + row); }
    const float* sums(int row) const { return best(2 * rows_) + std::int64_t(row) * parts_; }

  private:
    int rows_ = 0, width_ = 0, parts_ = 0;
    Buffer memory_;               // the outputs of the op on the device: those of all rows for `best`, `ids`, `parts`
    std::vector<float> numbers_;  // the same on the host
};

}  // namespace masquerade
