// SPDX-License-Identifier: MIT
// Lab 7: the functions that you write in lab.cpp. l is always a log variance. All results are stored: whatever their
// memory contained before is overwritten. All logarithms are natural.
#pragma once

// 1. Draws z from q = N(mu, exp l), with Z numbers each (Kingma & Welling 2013). The noise e is standard normal and
// does not depend on mu and l.
//     z = mu + exp(l / 2) e
void gaussian_sample(int Z, const double* mu, const double* l, const double* e, double* z);
// Computes the gradients dmu and dl (Z) from dz (Z). e is a constant.
void gaussian_sample_backward(int Z, const double* dz, const double* l, const double* e, double* dmu, double* dl);

// 2. Computes kl (Z): for each of the Z numbers separately, KL(N(mu, exp l) || N(0, 1)), the mean of log q(z) - log
// p(z) under q. It must be correct for every l, not only for l near 0.
void gaussian_kl(int Z, const double* mu, const double* l, double* kl);
// Computes the gradients dmu and dl (Z) from dkl (Z).
void gaussian_kl_backward(int Z, const double* dkl, const double* mu, const double* l, double* dmu, double* dl);

// 3. A model whose log p(x) is known: z (Z) is drawn from N(0, 1), and x (D) = A z + s n with normal noise n.
struct Model {
    int D, Z;
    const double* A;  // (D,Z)
    double s;         // standard deviation of the noise
};
// Returns log w = log p(x|z) + log p(z) - log q(z) at the draw z = mu + exp(l / 2) e from q = N(mu, exp l). The three
// terms are logs of densities, including the constants that normalise them.
double log_weight(const Model& model, const double* x, const double* mu, const double* l, const double* e);

// 4. Two estimates of log p(x) from the log weights of S draws from q.
//     elbo(): the mean of log w, which are finite
double elbo(int S, const double* log_w);
//     importance_weighted(): the log of the mean of w (Burda et al. 2015). It must be correct even if every log w is
//     -100000, if every log w is 100000, or if some or all of them are minus infinity.
double importance_weighted(int S, const double* log_w);

// 5. Returns the weight of the KL in the loss at step 0, 1 ... of a training with `steps` steps. The steps are divided
// into `cycles` equal cycles. In each cycle, the weight rises linearly from 0, reaches 1 after the fraction `rise` of
// the cycle, and stays 1 until the cycle ends. If `cycles` does not divide `steps`, a cycle is not a whole number of
// steps; find the place of a step in its cycle by whole numbers, because steps / cycles rounds. From step `steps` on,
// the weight is 1. `rise` is above 0 and at most 1.
// Sources: Bowman et al. 2016 for one cycle, Fu et al. 2019 for several cycles.
double kl_weight(int step, int steps, int cycles, double rise);
// The price of the KL of a batch: the term that the KL adds to the loss. kl (B,Z) has the KL of each of the Z numbers
// for each of the B sentences. If the mean of a number over the batch is below `least`, it costs as much as if its mean
// were `least` (free bits, Kingma et al. 2016):
//     price = weight sum_z max(mean_b kl_bz, least)
// Stores the gradient dkl (B,Z) of the price, and returns the price. No mean equals `least`.
double free_bits(int B, int Z, double weight, double least, const double* kl, double* dkl);

// 6. Draws z from the von Mises-Fisher distribution on the sphere in three dimensions (Ulrich 1984). Its density is
// ~ exp(kappa mu . z), with |mu| = 1.
//     z = w mu + sqrt(1 - w w) nu
// nu is the unit vector in the direction of e minus the part of e along mu. e has three standard normal numbers.
// w = mu . z has a density ~ exp(kappa w) on -1 ... 1. Choose w so that its cumulative distribution function is u,
// which is uniform between 0 and 1, both excluded. u may be as small as 1e-12, and kappa is between 0.01 and 5000.
void vmf_sample(double kappa, const double* mu, double u, const double* e, double* z);
// Returns the KL of the von Mises-Fisher distribution to the uniform distribution on the sphere.
double vmf_kl(double kappa);
