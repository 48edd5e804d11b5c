// SPDX-License-Identifier: MIT
// The functions of lab 10 that the check calls in the student's process. REMOTE lists the result type, the name and the
// parameters of a function, then its arguments as they are sent (docs/labs/remote/judge.h).
#include "docs/labs/10/launch.h"
#include "docs/labs/remote/both.h"

template <class F>
void fields(F f, Launched& l) {
    f(l.C, l.fault, l.loads_of_A, l.loads_of_B);
}

#define PRODUCT(name)                                                                            \
    REMOTE(void, name, (int M, int N, int K, const float* A, const float* B, float* C), M, N, K, \
           many(A, std::int64_t(M) * K), many(B, std::int64_t(K) * N), many(C, std::int64_t(M) * N))
PRODUCT(naive)
PRODUCT(ordered)
PRODUCT(tiled)
REMOTE(double, flops, (int M, int N, int K), M, N, K)
REMOTE(double, bytes, (int M, int N, int K), M, N, K)
REMOTE(double, bound, (double peak, double bandwidth, int M, int N, int K), peak, bandwidth, M, N, K)

#ifdef LAB_JUDGE
static Launched launch_there(int M, int N, int K, const Numbers& a, const Numbers& b, bool from_the_last) {
    return remote::call<Launched>("launch", M, N, K, a, b, from_the_last);
}
static const bool is_there = (launch = launch_there, true);
void product_kernel(int, int, int, const Float*, const Float*, Float*) {}
#else
static const remote::Served served_launch("launch", launch_here);
#endif
