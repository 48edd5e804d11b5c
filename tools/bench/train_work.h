// SPDX-License-Identifier: MIT
// The multiply-adds of a training step's matrix products, counted from the tape's records: the same on every
// device.
#pragma once
#include "engine/tape/tape.h"

namespace masquerade {

// By the type that they are multiplied in: bf16 where both factors are, else f32.
struct MultiplyAdds {
    double bf16 = 0, f32 = 0;

    double all() const { return bf16 + f32; }
    void add(double number, bool rounded) { (rounded ? bf16 : f32) += number; }
};

// Those of linear layers and of the loss. Attention has products, too, but what it needs of them depends on
// its mask (OurTraining::attention_multiply_adds); they are not in here.
void count_products(const Record& record, bool backward, MultiplyAdds& work);

}  // namespace masquerade
