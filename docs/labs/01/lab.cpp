// SPDX-License-Identifier: MIT
// Lab 1, for you to write. docs/labs/01-free-functions.md describes the task. `make lab LAB=01` checks your work.
#include "docs/labs/01/lab.h"

namespace lab {

double forward(Model& m, const Batch& batch) {
    embedding_forward(list(batch.ids), m.token, m.x);
    // ...
    return m.loss.numbers[0];
}

void backward(Model& /*m*/, const Batch& /*batch*/) {}

void update(Model& /*m*/, double /*rate*/) {}

}  // namespace lab
