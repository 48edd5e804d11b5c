// SPDX-License-Identifier: MIT
// Lab 6: a small Transformer, which is given, and the functions that you write in lab.cpp: UniVAE (Su 2021) in its
// joint form and in its split form. A row has C numbers, and a latent has Z numbers. Each of the upper K of the L
// layers has a latent. Rows, layers and latents are counted from 0.
#pragma once
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <vector>

// ---- Given ----

using Row = std::vector<double>;
using Rows = std::vector<Row>;
using Tokens = std::vector<int>;  // a source begins with [CLS]

// Returns the product of the matrix w (out,in) and the vector x (in).
inline Row times(const Rows& w, const Row& x) {
    Row y(w.size(), 0.0);
    for (std::size_t i = 0; i < w.size(); i++)
        for (std::size_t j = 0; j < x.size(); j++) y[i] += w[i][j] * x[j];
    return y;
}
inline void add(Row& x, const Row& y) {
    for (std::size_t i = 0; i < x.size(); i++) x[i] += y[i];
}

struct Layer {
    std::size_t number;  // from 0 to L - 1
    Rows q, k, v, o;     // (C,C)
    Rows up, down;       // (F,C), (C,F)
};

// The key and the value of a row in one layer. Other rows can read nothing else of this row.
struct Key {
    Row k, v;  // (C)
};

// Counts the calls of key_of() (`keys`) and output_of() (`rows`) in each layer. The check reads these counts.
struct Work {
    std::map<std::size_t, int> keys, rows;
};
inline Work work;

// Returns the key and the value of x (C), an input row of the layer.
inline Key key_of(const Layer& layer, const Row& x) {
    work.keys[layer.number]++;
    return {times(layer.k, x), times(layer.v, x)};
}

// Returns the layer's output (C) for its input row x (C), which sees exactly the keys in `seen`, in any order.
//     h = x + o sum_j p_j v_j,   p = softmax(q x . k_j / sqrt(C)),   output = h + down tanh(up h)
// If there is no key, the sum is 0.
inline Row output_of(const Layer& layer, const Row& x, const std::vector<Key>& seen) {
    work.rows[layer.number]++;
    const Row q = times(layer.q, x);
    Row sum(x.size(), 0.0), h = x;
    double all = 0;
    for (const Key& key : seen) {
        double score = 0;
        for (std::size_t c = 0; c < q.size(); c++) score += q[c] * key.k[c];
        const double p = std::exp(score / std::sqrt(double(q.size())));
        for (std::size_t c = 0; c < q.size(); c++) sum[c] += p * key.v[c];
        all += p;
    }
    for (double& each : sum) each = seen.empty() ? 0 : each / all;
    add(h, times(layer.o, sum));
    Row inner = times(layer.up, h);
    for (double& each : inner) each = std::tanh(each);
    add(h, times(layer.down, inner));
    return h;
}

// The function y = w x + b.
struct Affine {
    Rows w;
    Row b;
    Row operator()(const Row& x) const {
        Row y = times(w, x);
        add(y, b);
        return y;
    }
};

// z = in(row of [CLS]) has Z numbers, and out(z) has C numbers. A VAE draws z from a distribution with the mean
// in(...). In this lab, z is this mean itself.
struct Latent {
    Affine in, out;
};

struct Model {
    std::size_t max_length;       // the largest number of tokens of a source, and also of a target
    Rows tokens, positions;       // (V,C), (2 max_length,C)
    std::vector<Layer> layers;    // L
    std::vector<Latent> latents;  // K, 0 < K < L: latents[l] is at the input of layer L - K + l
};

// Returns the input row (C) of a token at a position. Positions are counted from 0.
inline Row embed(const Model& model, int token, std::size_t position) {
    Row x = model.tokens[std::size_t(token)];
    add(x, model.positions[position]);
    return x;
}

// ---- To be written ----

// mask[i][j] says whether row i sees the key of row j. The rows of the source come first; row 0 is the [CLS] of the
// source. The rows of the target follow. In both kinds of mask, the source is bidirectional and the target is causal.
//     independent   for layers without a latent: neither half sees the other half
//     uniae         for layers with a latent: the target also sees [CLS], but no other row of the source
enum class Kind { independent, uniae };
using Mask = std::vector<std::vector<bool>>;
Mask mask(Kind kind, std::size_t source, std::size_t target);

// The joint form: source and target are one sequence. The source has the positions 0, 1, 2 ..., and the target has the
// positions max_length, max_length + 1 ..., so that the target's positions do not reveal the length of the source. At
// the input of each layer with a latent, z_l is computed from the row of [CLS], and Out_l(z_l) replaces this row. Then
// the layer runs. Returns z (K,Z) and y, the last layer's output for the rows of the target.
struct Joint {
    Rows z, y;
};
Joint joint(const Model& model, const Tokens& source, const Tokens& target);

// The split form: encode() returns z (K,Z) without a target, and decode() returns y without a source. z and y are the
// same as in the joint form. The two functions call key_of() and output_of() only if the result is needed.
Rows encode(const Model& model, const Tokens& source);
Rows decode(const Model& model, const Rows& z, const Tokens& target);

// begin() and step() compute the y of decode(), one token at a time. In each layer, a step computes one key and one
// row. For each layer, a cache contains the keys that the next token will see, except its own key. begin() returns the
// cache before the first token. step() takes the next token of the target, adds its keys to the cache, and returns its
// row of y.
using Cache = std::vector<std::vector<Key>>;
Cache begin(const Model& model, const Rows& z);
Row step(const Model& model, Cache& cache, int token);

// Tests a forward that returns y, as joint() does, but may be wrong. Returns what a row of y depends on although it
// must not. A dependence counts even if only one bit of y changes.
//     future   the row depends on a later token of the target
//     source   the row depends on a token of the source, even if no z changes
//     length   the row depends on the length of the source, but not on its tokens, even if no z changes
// leak() may call the forward with any model, source and target, any number of times. A forward in the check has at
// most one leak. The source in the check is shorter than max_length.
enum class Leak { none, future, source, length };
using Forward = std::function<Rows(const Model& model, const Tokens& source, const Tokens& target)>;
Leak leak(const Forward& forward, const Model& model, const Tokens& source, const Tokens& target);
