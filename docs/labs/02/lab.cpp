// SPDX-License-Identifier: MIT
// Lab 2, for you to write. docs/labs/02-break-a-backward.md describes the task. `make lab LAB=02` checks your work.
#include "docs/labs/02/lab.h"

#include <cmath>

void layernorm_backward(int /*N*/, int /*C*/, const double* /*dy*/, const double* /*x*/, const double* /*w*/,
                        double /*eps*/, double* /*dx*/, double* /*dw*/, double* /*db*/) {}
