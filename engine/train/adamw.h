// SPDX-License-Identifier: MIT
// AdamW on the whole parameter buffer. Each update first clips the gradient by its global norm. Weight decay applies
// only to matrices.                                                                     Loshchilov & Hutter 2017
#pragma once
#include "engine/train/optimiser.h"

namespace masquerade {

class AdamW : public Optimiser {
  public:
    AdamW(Parameters& parameters, const OptimiserRule& rule)
        : Optimiser(parameters, {"adamw.first_moment", "adamw.second_moment"}), rule_(rule) {}
    void update(std::int64_t t, double learning_rate) override;

  private:
    OptimiserRule rule_;
};

}  // namespace masquerade
