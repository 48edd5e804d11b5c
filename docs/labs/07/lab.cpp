// SPDX-License-Identifier: MIT
// Lab 7, for you to write. docs/labs/07-a-latent.md describes the task. `make lab LAB=07` checks your work.
#include "docs/labs/07/lab.h"

#include <cmath>

void gaussian_sample(int /*Z*/, const double* /*mu*/, const double* /*l*/, const double* /*e*/, double* /*z*/) {}

void gaussian_sample_backward(int /*Z*/, const double* /*dz*/, const double* /*l*/, const double* /*e*/,
                              double* /*dmu*/, double* /*dl*/) {}

void gaussian_kl(int /*Z*/, const double* /*mu*/, const double* /*l*/, double* /*kl*/) {}

void gaussian_kl_backward(int /*Z*/, const double* /*dkl*/, const double* /*mu*/, const double* /*l*/, double* /*dmu*/,
                          double* /*dl*/) {}

double log_weight(const Model& /*model*/, const double* /*x*/, const double* /*mu*/, const double* /*l*/,
                  const double* /*e*/) {
    return 0;
}

double elbo(int /*S*/, const double* /*log_w*/) { return 0; }

double importance_weighted(int /*S*/, const double* /*log_w*/) { return 0; }

double kl_weight(int /*step*/, int /*steps*/, int /*cycles*/, double /*rise*/) { return 0; }

double free_bits(int /*B*/, int /*Z*/, double /*weight*/, double /*least*/, const double* /*kl*/, double* /*dkl*/) {
    return 0;
}

void vmf_sample(double /*kappa*/, const double* /*mu*/, double /*u*/, const double* /*e*/, double* /*z*/) {}

double vmf_kl(double /*kappa*/) { return 0; }
