// SPDX-License-Identifier: MIT
#pragma once
#include "engine/tensor/view.h"

namespace masquerade {

// sums(O) = column sums of x(M,O), f32 or bf16; in float, rows in chunks of 64, the sums of chunks added in
// order.
void column_sums(const View& x, const Grad& sums);

}  // namespace masquerade
