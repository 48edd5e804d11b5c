// SPDX-License-Identifier: MIT
// The functions of lab 11 that the check calls in the student's process. REMOTE lists the result type, the name and the
// parameters of a function, then its arguments as they are sent (docs/labs/remote/judge.h).
#include "docs/labs/11/lab.h"
#include "docs/labs/remote/both.h"

namespace lab {

template <class F>
void fields(F f, Rule& r) {
    f(r.rate, r.beta1, r.beta2, r.eps, r.decay, r.clip);
}
template <class F>
void fields(F f, Sizes& s) {
    f(s.L, s.C, s.H, s.F, s.V, s.P);
}

REMOTE(double, clip_factor, (int N, const double* g, double clip), N, many(g, N), clip)
REMOTE(void, adamw, (int N, int matrices, const Rule& rule, int t, const double* g, double* p, double* m, double* v), N,
       matrices, rule, t, many(g, N), many(p, N), many(m, N), many(v, N))
REMOTE(std::uint16_t, to_bf16, (float x), x)
REMOTE(float, from_bf16, (std::uint16_t x), x)
REMOTE(float, lost_below, (float w), w)
REMOTE(void, mixed_step,
       (int N, int matrices, const Rule& rule, int t, const float* g, float* p, float* m, float* v,
        std::uint16_t* copy),
       N, matrices, rule, t, many(g, N), many(p, N), many(m, N), many(v, N), many(copy, N))
REMOTE(void, step_without_master,
       (int N, int matrices, const Rule& rule, int t, const float* g, std::uint16_t* p, float* m, float* v), N,
       matrices, rule, t, many(g, N), many(p, N), many(m, N), many(v, N))
REMOTE(std::int64_t, parameters, (const Sizes& s), s)
REMOTE(std::int64_t, product_work, (const Sizes& s, std::int64_t N), s, N)
REMOTE(std::int64_t, attention_work, (const Sizes& s, std::int64_t pairs), s, pairs)
REMOTE(std::int64_t, state_bytes, (std::int64_t n, bool mixed), n, mixed)
REMOTE(std::int64_t, kept_bytes, (const Sizes& s, std::int64_t N, bool mixed), s, N, mixed)

}  // namespace lab
