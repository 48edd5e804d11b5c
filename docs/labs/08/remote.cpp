// SPDX-License-Identifier: MIT
// The functions of lab 8 that the check calls in the student's process. REMOTE lists the result type, the name and the
// parameters of a function, then its arguments as they are sent (docs/labs/remote/judge.h).
#include "docs/labs/08/lab.h"
#include "docs/labs/remote/both.h"

REMOTE(void, features, (int M, int D, const double* w, const double* x, double* phi), M, D, many(w, M* D), many(x, D),
       many(phi, M))
REMOTE(void, linear_attention, (int N, int M, int D, const double* a, const double* b, const double* v, double* y), N,
       M, D, many(a, N* M), many(b, N* M), many(v, N* D), many(y, N* D))
REMOTE(void, linear_attention_backward,
       (int N, int M, int D, const double* a, const double* b, const double* v, const double* dy, double* da,
        double* db, double* dv),
       N, M, D, many(a, N* M), many(b, N* M), many(v, N* D), many(dy, N* D), many(da, N* M), many(db, N* M),
       many(dv, N* D))
