// SPDX-License-Identifier: MIT
// Lab 7: what is to be written in lab.cpp. l is a log variance everywhere; all results are stored, not added; all logs
// are natural.
#pragma once

// 1. A draw of q = N(mu, exp l), made of noise e that depends on nothing; Z numbers each:         Kingma & Welling 2013
//     z = mu + exp(l / 2) e
void gaussian_sample(int Z, const double* mu, const double* l, const double* e, double* z);
// Its gradients, of dz (Z). e is a constant.
void gaussian_sample_backward(int Z, const double* dz, const double* l, const double* e, double* dmu, double* dl);

// 2. KL(N(mu, exp l) || N(0, 1)) of each of the Z numbers by itself: the mean of log q(z) - log p(z) under q.
void gaussian_kl(int Z, const double* mu, const double* l, double* kl);
// Its gradients, of dkl (Z).
void gaussian_kl_backward(int Z, const double* dkl, const double* mu, const double* l, double* dmu, double* dl);

// 3. A model whose log p(x) is known: z (Z) is drawn from N(0, 1), and x (D) = A z + s n with normal noise n.
struct Model {
    int D, Z;
    const double* A;  // (D,Z)
    double s;         // standard deviation of the noise
};
// log w = log p(x|z) + log p(z) - log q(z) at the one draw z = mu + exp(l / 2) e of q = N(mu, exp l). These are logs of
// densities: whole, with their constants.
double log_weight(const Model& model, const double* x, const double* mu, const double* l, const double* e);

// 4. Two estimates of log p(x) from S draws of q, by their log weights.
//     the mean of log w: the ELBO
double elbo(int S, const double* log_w);
//     the log of the mean of w, also where every log w is -100000, or 100000, or some are minus infinity:
//                                                                                  Burda et al. 2015
double importance_weighted(int S, const double* log_w);

// 5. The weight of the KL in the loss at step 0, 1 ... of a training of `steps` steps. They are cut into `cycles` equal
// cycles; in each the weight rises from 0 by equal amounts, is 1 after the share `rise` of the cycle, and stays there.
// From step `steps` on it is 1.
// One cycle: Bowman et al. 2016; more: Fu et al. 2019.
double kl_weight(int step, int steps, int cycles, double rise);
// The price of the KL of a batch. kl (B,Z) is of B sentences and Z numbers; a number of z whose mean over the batch is
// below `least` costs as much as if its mean were `least`:
// Kingma et al. 2016
//     price = weight sum_z max(mean_b kl_bz, least)
// Stores the gradient dkl (B,Z) of the price, and returns the price.
double free_bits(int B, int Z, double weight, double least, const double* kl, double* dkl);

// 6. A draw of the von Mises-Fisher distribution on the sphere in three dimensions, of density ~ exp(kappa mu . z).
// |mu| = 1
//     z = w mu + sqrt(1 - w w) nu,   nu: the direction of what is left of e without its part along mu
// w = mu . z has the density ~ exp(kappa w) on -1 ... 1. u, uniform on 0 ... 1, is the probability that w is smaller
// than the w that is drawn. e is three normal numbers. kappa is 0.01 ... 5000.                                   Ulrich
// 1984
void vmf_sample(double kappa, const double* mu, double u, const double* e, double* z);
// KL to the uniform distribution on the sphere.
double vmf_kl(double kappa);
