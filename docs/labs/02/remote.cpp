// SPDX-License-Identifier: MIT
// The functions of lab 2 that the check calls in the student's process. REMOTE lists the result type, the name and the
// parameters of a function, then its arguments as they are sent (docs/labs/remote/judge.h).
#include "docs/labs/02/lab.h"
#include "docs/labs/remote/both.h"

REMOTE(void, layernorm_backward,
       (int N, int C, const double* dy, const double* x, const double* w, double eps, double* dx, double* dw,
        double* db),
       N, C, many(dy, N* C), many(x, N* C), many(w, C), eps, many(dx, N* C), many(dw, C), many(db, C))
