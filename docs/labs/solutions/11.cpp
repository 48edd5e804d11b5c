// SPDX-License-Identifier: MIT
// Lab 11, solved. The arithmetic of AdamW is written once, for double and for float.
#include "docs/labs/11/lab.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace lab {
namespace {

template <class A>
double factor(int N, const A* g, double clip) {
    double squares = 0;
    for (int i = 0; i < N; i++) squares += double(g[i]) * double(g[i]);
    const double norm = std::sqrt(squares);
    return clip > 0 && norm > clip ? clip / norm : 1;
}
template <class A>
void step(int N, int matrices, const Rule& rule, int t, const A* g, A* p, A* m, A* v) {
    const A c = A(factor(N, g, rule.clip)), beta1 = A(rule.beta1), beta2 = A(rule.beta2);
    const A c1 = A(1 / (1 - std::pow(rule.beta1, t))), c2 = A(1 / (1 - std::pow(rule.beta2, t)));
    for (int i = 0; i < N; i++) {
        const A d = c * g[i], decay = i < matrices ? A(rule.decay) : A(0);
        m[i] = beta1 * m[i] + (1 - beta1) * d;
        v[i] = beta2 * v[i] + (1 - beta2) * d * d;
        p[i] -= A(rule.rate) * (m[i] * c1 / (std::sqrt(v[i] * c2) + A(rule.eps)) + decay * p[i]);
    }
}

}  // namespace

double clip_factor(int N, const double* g, double clip) { return factor(N, g, clip); }
void adamw(int N, int matrices, const Rule& rule, int t, const double* g, double* p, double* m, double* v) {
    step(N, matrices, rule, t, g, p, m, v);
}

std::uint16_t to_bf16(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    if (std::isnan(x)) return std::uint16_t(bits >> 16 | 0x40);
    return std::uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float from_bf16(std::uint16_t x) {
    const std::uint32_t bits = std::uint32_t(x) << 16;
    float all;
    std::memcpy(&all, &bits, sizeof all);
    return all;
}
// The neighbour towards 0 is half as far from a power of two as the other neighbour.
float lost_below(float w) {
    int exponent;
    const float half = std::frexp(std::fabs(w), &exponent) == 0.5f ? 0.25f : 0.5f;
    return half * std::ldexp(1.0f, exponent - 8);
}

void mixed_step(int N, int matrices, const Rule& rule, int t, const float* g, float* p, float* m, float* v,
                std::uint16_t* copy) {
    step(N, matrices, rule, t, g, p, m, v);
    for (int i = 0; i < N; i++) copy[i] = to_bf16(p[i]);
}
void step_without_master(int N, int matrices, const Rule& rule, int t, const float* g, std::uint16_t* p, float* m,
                         float* v) {
    std::vector<float> all(N);
    for (int i = 0; i < N; i++) all[i] = from_bf16(p[i]);
    step(N, matrices, rule, t, g, all.data(), m, v);
    for (int i = 0; i < N; i++) p[i] = to_bf16(all[i]);
}

std::int64_t parameters(const Sizes& s) {
    const std::int64_t C = s.C, F = s.F, V = s.V;
    const std::int64_t embedding = (V + 2 + s.P) * C + 2 * C;
    const std::int64_t layer = 4 * (C * C + C) + (F * C + F) + (C * F + C) + 4 * C;
    const std::int64_t head = C * C + C + 2 * C + V;
    return embedding + s.L * layer + head;
}
// Forward y = x w^T, backward dx = dy w and dw = dy^T x: three products with as many multiply-adds each.
std::int64_t product_work(const Sizes& s, std::int64_t N) {
    const std::int64_t C = s.C, layer = 4 * C * C + 2 * C * s.F, head = C * C + C * s.V;
    return 3 * N * (s.L * layer + head);
}
// Forward q k and p v; backward dv, dp, dq and dk.
std::int64_t attention_work(const Sizes& s, std::int64_t pairs) { return 6 * pairs * s.C * s.L; }
std::int64_t state_bytes(std::int64_t n, bool mixed) { return n * (4 * 4 + (mixed ? 2 : 0)); }
// Eight values have width C: the layer's input, q, k, v, attention's result, the sum before the first norm, that norm's
// output, and the sum before the second norm. Two have width F: the input and the output of gelu.
std::int64_t kept_bytes(const Sizes& s, std::int64_t N, bool mixed) {
    return N * ((8 * s.C + 2 * s.F) * (mixed ? 2 : 4) + (s.H + 4) * 4);
}

}  // namespace lab
