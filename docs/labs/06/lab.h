// SPDX-License-Identifier: MIT
// Lab 6: a small Transformer, which is given, and what is to be written in lab.cpp: UniVAE (Su 2021), joint and split.
// A row has C numbers, a latent has Z. The upper K of the L layers have a latent. Rows, layers and latents count from
// 0.
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

// w x, of w (out,in) and x (in).
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

// All that others may read of a row in one layer.
struct Key {
    Row k, v;  // (C)
};

// Counts the calls of key_of and of output_of, by layer: the check reads it.
struct Work {
    std::map<std::size_t, int> keys, rows;
};
inline Work work;

// The key of the row x (C), at the input of the layer.
inline Key key_of(const Layer& layer, const Row& x) {
    work.keys[layer.number]++;
    return {times(layer.k, x), times(layer.v, x)};
}

// The layer's output (C) for its input row x (C), which sees the keys `seen` and no other. Their order does not matter.
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

// y = w x + b
struct Affine {
    Rows w;
    Row b;
    Row operator()(const Row& x) const {
        Row y = times(w, x);
        add(y, b);
        return y;
    }
};

// z = in(row of [CLS]) has Z numbers, out(z) has C. A VAE draws z around in(...); here z is in(...) itself, its mean.
struct Latent {
    Affine in, out;
};

struct Model {
    std::size_t max_length;       // of a source, and of a target
    Rows tokens, positions;       // (V,C), (2 max_length,C)
    std::vector<Layer> layers;    // L
    std::vector<Latent> latents;  // K, 0 < K < L: latents[l] is at the input of layer L - K + l
};

// The input row (C) of a token at a position, counted from 0.
inline Row embed(const Model& model, int token, std::size_t position) {
    Row x = model.tokens[std::size_t(token)];
    add(x, model.positions[position]);
    return x;
}

// ---- To be written ----

// Who sees whom: mask[i][j] says that row i sees the key of row j. The rows of the source come first, and row 0 is its
// [CLS]. Then come the rows of the target. In both kinds the source is bidirectional and the target is causal.
//     independent   no half sees the other: the layers without a latent
//     uniae         the target also sees [CLS], and no other row of the source: the layers with a latent
enum class Kind { independent, uniae };
using Mask = std::vector<std::vector<bool>>;
Mask mask(Kind kind, std::size_t source, std::size_t target);

// The figure: both halves are one sequence. The source stands at the positions 0, 1, 2 ..., the target at max_length,
// max_length + 1 ..., so that the place of the target does not tell the length of the source. At the input of each
// layer with a latent, z_l is made from the row of [CLS], and Out_l(z_l) replaces this row. Then the layer runs.
// Gives z (K,Z) and y, the last layer's output for the rows of the target.
struct Joint {
    Rows z, y;
};
Joint joint(const Model& model, const Tokens& source, const Tokens& target);

// The split form: `encode` gives z (K,Z) without a target, `decode` gives y without a source. The results are those of
// the joint form. Both make no key and compute no row that nobody needs.
Rows encode(const Model& model, const Tokens& source);
Rows decode(const Model& model, const Rows& z, const Tokens& target);

// The same y, one token at a time: a step makes one key and computes one row in each layer. A cache holds, for each
// layer, the keys that the next token will see besides its own. `begin` gives the cache before the first token.
using Cache = std::vector<std::vector<Key>>;
Cache begin(const Model& model, const Rows& z);
Row step(const Model& model, Cache& cache, int token);

// Tests a forward that gives y, as `joint` does, and may have a fault. Says what a row of y depends on and should not,
// even if one bit of it moves:
//     future   on a later token of the target
//     source   on a token of the source, though no z moves
//     length   on the length of the source, though no z moves, and not on its tokens
// `leak` may call the forward with any model, source and target, as often as it likes. A forward of the check has one
// leak at most. The source that the check gives is shorter than max_length.
enum class Leak { none, future, source, length };
using Forward = std::function<Rows(const Model& model, const Tokens& source, const Tokens& target)>;
Leak leak(const Forward& forward, const Model& model, const Tokens& source, const Tokens& target);
