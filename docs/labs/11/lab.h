// SPDX-License-Identifier: MIT
// Lab 11: the functions that you write in lab.cpp. Parameters, gradients and moments are arrays of N numbers. The first
// `matrices` of them belong to matrices, the others to biases and norms.
#pragma once
#include <cstdint>

namespace lab {

// 1. AdamW (Loshchilov & Hutter 2017), in double.

struct Rule {
    double rate, beta1, beta2, eps, decay, clip;
};
// Returns the factor that scales the gradients g: 1 if their norm, sqrt(sum g^2), is at most `clip` or if clip is 0;
// otherwise the factor that makes the norm `clip`.
double clip_factor(int N, const double* g, double clip);
// Step t = 1, 2, 3 ... of AdamW. The gradient is c g, where c is the factor of clip_factor(). Updates the moments m and
// v, which are 0 before step 1, then the parameters p:
//     m = beta1 m + (1 - beta1) c g,   v = beta2 v + (1 - beta2) (c g)^2
//     p -= rate (m' / (sqrt(v') + eps) + decay p)
// m' and v' are m and v divided by 1 - beta1^t and 1 - beta2^t. Only matrices decay. g does not change.
void adamw(int N, int matrices, const Rule& rule, int t, const double* g, double* p, double* m, double* v);

// 2. bf16: the upper 16 bits of a float. 1 bit is the sign, 8 bits are the exponent, 7 bits are the fraction.

// Returns the bf16 number that is nearest to x; of two that are equally near, the one whose last bit is 0. Numbers
// beyond the largest bf16 number and half a unit become infinite. A NaN stays a NaN.
std::uint16_t to_bf16(float x);
float from_bf16(std::uint16_t x);
// w is a bf16 number, 2^-100 < |w| < 2^100. Returns the largest d for which all changes smaller than d are lost: w + e,
// rounded to bf16, is w whenever |e| < d.
float lost_below(float w);

// One step of AdamW in mixed precision (Micikevicius et al. 2018). g, the master weights p, m and v are float, and so is
// the arithmetic; only the norm is double. `copy` receives the new p, rounded to bf16.
void mixed_step(int N, int matrices, const Rule& rule, int t, const float* g, float* p, float* m, float* v,
                std::uint16_t* copy);
// The same step without master weights: the bf16 numbers p are the only weights. The new p is computed in float, then
// rounded.
void step_without_master(int N, int matrices, const Rule& rule, int t, const float* g, std::uint16_t* p, float* m,
                         float* v);

// 3. What a training step costs. The model is the language model of `./inspect program lm`: L layers of width C with H
// heads and inner width F, and a vocabulary of V tokens. Each linear layer has a bias. The embedding adds a row of the
// token table (V,C), a row of the type table (2,C) and, if P > 0, a row of the position table (P,C), and ends with a
// norm. A layer has four products (C,C) for query, key, value and output, a norm, the products (F,C) and (C,F) of the
// feed-forward part, and another norm. The head is a product (C,C), gelu, a norm, and a product with the token table,
// which is the same as in the embedding, and a bias of V numbers. A norm has a weight and a bias.
struct Sizes {
    int L, C, H, F, V, P;
};
// Returns the number of parameters.
std::int64_t parameters(const Sizes& s);
// Returns the multiply-adds of all products with weights in one step, forward and backward, for N rows that all have a
// target. The embedding needs none.
std::int64_t product_work(const Sizes& s, std::int64_t N);
// Returns the multiply-adds of attention in one step, forward and backward, in all layers. `pairs` is the number of
// pairs of a query and a key that may see each other. If the backward computes the scores again, this is not counted.
std::int64_t attention_work(const Sizes& s, std::int64_t pairs);
// Returns the bytes of weights, gradients and moments for n parameters. In mixed precision, there is also the copy.
std::int64_t state_bytes(std::int64_t n, bool mixed);
// Returns the bytes of the values of ONE layer that the backward reads, for N rows, each value counted once: the inputs
// of its products, its attention, gelu and norms. Attention's backward reads q, k, v, its result, and one number for
// each row and head. A norm's backward reads its input and two numbers for each row. The outputs of a norm and of gelu
// are kept, because the next product reads them; the layer's last output belongs to the next layer. In mixed precision,
// all these numbers are bf16, except those of which there is one for each row, or for each row and head.
std::int64_t kept_bytes(const Sizes& s, std::int64_t N, bool mixed);

}  // namespace lab
