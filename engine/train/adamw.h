// SPDX-License-Identifier: MIT
// AdamW over the whole parameter buffer, with the global norm clipped first.             Loshchilov & Hutter 2017
#pragma once
#include "engine/nn/parameters.h"
#include "engine/ops/ops.h"

namespace masquerade {

class AdamW {
  public:
    AdamW(Parameters& parameters, const AdamWRule& rule);
    // Update number t = 1, 2, ...; returns nothing: the norm stays where the gradients are, norm() reads it.
    void update(std::int64_t t, double learning_rate);
    double norm() const;

    // The moments as flat rows, for checkpoints.
    View first_moment() const { return parameters_.flat(m_, "adamw.first_moment"); }
    View second_moment() const { return parameters_.flat(v_, "adamw.second_moment"); }

  private:
    View norm_view() const;

    Parameters& parameters_;
    AdamWRule rule_;
    Buffer m_, v_, small_;  // small: norm, then control
};

}  // namespace masquerade
