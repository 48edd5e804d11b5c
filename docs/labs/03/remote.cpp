// SPDX-License-Identifier: MIT
// The functions of lab 3 that the check calls in the student's process. REMOTE lists the result type, the name and the
// parameters of a function, then its arguments as they are sent (docs/labs/remote/judge.h).
#include "docs/labs/03/lab.h"
#include "docs/labs/remote/both.h"

REMOTE(void, attention_backward,
       (int N, int D, const double* q, const double* k, const double* v, const double* dy, double* dq, double* dk,
        double* dv),
       N, D, many(q, N* D), many(k, N* D), many(v, N* D), many(dy, N* D), many(dq, N* D), many(dk, N* D),
       many(dv, N* D))
