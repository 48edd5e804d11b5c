// SPDX-License-Identifier: MIT
// The functions of lab 7 that the check calls in the student's process. REMOTE lists the result type, the name and the
// parameters of a function, then its arguments as they are sent (docs/labs/remote/judge.h).
#include "docs/labs/07/lab.h"
#include "docs/labs/remote/both.h"

#ifdef LAB_JUDGE
namespace remote {
inline void put_value(Message& m, const Model& x) {
    put(m, x.D), put(m, x.Z), put(m, Numbers(x.A, x.A + x.D * x.Z)), put(m, x.s);
}
}  // namespace remote
#else
template <>
struct remote::Parameter<const Model&> {
    Model x;
    std::vector<double> A;
    void read(Message& m) { take(m, x.D), take(m, x.Z), take(m, A), take(m, x.s), x.A = A.data(); }
    const Model& value() { return x; }
    void back(Message&) {}
};
#endif

REMOTE(void, gaussian_sample, (int Z, const double* mu, const double* l, const double* e, double* z), Z, many(mu, Z),
       many(l, Z), many(e, Z), many(z, Z))
REMOTE(void, gaussian_sample_backward,
       (int Z, const double* dz, const double* l, const double* e, double* dmu, double* dl), Z, many(dz, Z), many(l, Z),
       many(e, Z), many(dmu, Z), many(dl, Z))
REMOTE(void, gaussian_kl, (int Z, const double* mu, const double* l, double* kl), Z, many(mu, Z), many(l, Z),
       many(kl, Z))
REMOTE(void, gaussian_kl_backward,
       (int Z, const double* dkl, const double* mu, const double* l, double* dmu, double* dl), Z, many(dkl, Z),
       many(mu, Z), many(l, Z), many(dmu, Z), many(dl, Z))
REMOTE(double, log_weight, (const Model& model, const double* x, const double* mu, const double* l, const double* e),
       model, many(x, model.D), many(mu, model.Z), many(l, model.Z), many(e, model.Z))
REMOTE(double, elbo, (int S, const double* log_w), S, many(log_w, S))
REMOTE(double, importance_weighted, (int S, const double* log_w), S, many(log_w, S))
REMOTE(double, kl_weight, (int step, int steps, int cycles, double rise), step, steps, cycles, rise)
REMOTE(double, free_bits, (int B, int Z, double weight, double least, const double* kl, double* dkl), B, Z, weight,
       least, many(kl, B* Z), many(dkl, B* Z))
REMOTE(void, vmf_sample, (double kappa, const double* mu, double u, const double* e, double* z), kappa, many(mu, 3), u,
       many(e, 3), many(z, 3))
REMOTE(double, vmf_kl, (double kappa), kappa)
