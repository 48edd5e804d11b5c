// SPDX-License-Identifier: MIT
// Every op as a call on the tape: it computes at once, and leaves a record with a named backward.
// Sizes and formulas: engine/ops/ops.h.
#pragma once
#include "engine/ops/ops.h"
#include "engine/tape/tape.h"

namespace masquerade {

// y(N,O) = x(N,I) w(O,I)^T + b(O); b may be null
Tensor* linear(Tape& tape, Tensor* x, Tensor* w, Tensor* b, const std::string& name);
// linear() with y in the arithmetic type of x, for latents and logits, which must not be rounded on the way.
Tensor* linear_unrounded(Tape& tape, Tensor* x, Tensor* w, Tensor* b, const std::string& name);
// x in another storage type; x itself if it already has that type.
Tensor* convert(Tape& tape, Tensor* x, DType type, const std::string& name);
// The numbers of x in another shape.
Tensor* reshape(Tape& tape, Tensor* x, const Shape& shape, const std::string& name);
Tensor* layernorm(Tape& tape, Tensor* x, Tensor* w, Tensor* b, double eps, const std::string& name);
Tensor* rms_norm(Tape& tape, Tensor* x, Tensor* w, double eps, const std::string& name);
Tensor* tanh(Tape& tape, Tensor* x, const std::string& name);
Tensor* silu(Tape& tape, Tensor* x, const std::string& name);
Tensor* squared_relu(Tape& tape, Tensor* x, const std::string& name);
// y(N,F) of x(N,2F)
Tensor* glu(Tape& tape, Tensor* x, GateKind kind, const std::string& name);
Tensor* gelu(Tape& tape, Tensor* x, GeluKind kind, const std::string& name);
// The two halves of a feed-forward network, which share the gelu: u(N,F) = x w^T + b with a = gelu(u), then
// y(N,C) = a w^T + b, whose gradient goes to u.
struct Activation {
    Tensor *u, *a;
    GeluKind kind;
};
Activation linear_gelu(Tape& tape, Tensor* x, Tensor* w, Tensor* b, GeluKind kind, const std::string& name,
                       const std::string& gelu_name);
Tensor* gelu_linear(Tape& tape, const Activation& x, Tensor* w, Tensor* b, const std::string& name);
// (N,C) x with column c times w[c]
Tensor* scale_columns(Tape& tape, Tensor* x, Tensor* w, const std::string& name);
Tensor* add(Tape& tape, Tensor* a, Tensor* b, const std::string& name);
// The identity if the rate is 0 or the tape is not training.
Tensor* dropout(Tape& tape, Tensor* x, const RowNames& rows, float rate, const std::string& name);
// The end of each half of a post-LN block, layernorm(x + dropout(f)), in one pass; the names of its three tensors.
struct ResidualNames {
    std::string dropout, sum, norm;
};
Tensor* residual_norm(Tape& tape, Tensor* x, Tensor* f, const RowNames& rows, float rate, Tensor* w, Tensor* b,
                      double eps, const ResidualNames& names);
Tensor* embedding(Tape& tape, Ints ids, Tensor* w, const std::string& name);
// Rotates the first `columns` columns; rotary_table (P,D) from make_rotary_table().
Tensor* rotary(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table, int columns, const std::string& name);
// Rotates linear(x, w, b), without a tensor in between.
Tensor* linear_rotary(Tape& tape, Tensor* x, Tensor* w, Tensor* b, Ints positions, Tensor* rotary_table, int columns,
                      const std::string& name);
// q (Nq,H D) of H heads, every kv (Nk,2 G D), G a divisor of H. The graph must outlive the step.
Tensor* attention(Tape& tape, Tensor* q, const std::vector<Tensor*>& kv, const SegmentGraph& graph, int heads,
                  float dropout_rate, const RowNames& query_rows, const std::string& name);
// y (N,width) of x through a state of its keys; pack[s], kv[s] and, for a gated pack, gate[s] are those of source s.
// `before` (B, state_numbers), if not null, is the state before the rows of each document; `after`, if not null,
// receives the state after them. The graph must outlive the step.
Tensor* state_attention(Tape& tape, Tensor* x, const std::vector<Tensor*>& pack, const std::vector<Tensor*>& kv,
                        int width, const SegmentGraph& graph, const StateRule& rule, const std::string& name,
                        Tensor* before = nullptr, Tensor** after = nullptr, const std::vector<Tensor*>& gate = {});
int state_numbers(int width, const StateRule& rule);
// y (Nq,C) of q (Nq,C), unrounded, e (2 reach + 1,C) and v[s] (Nk,C). The graph must outlive the step.
Tensor* local_lambda(Tape& tape, Tensor* q, Tensor* e, const std::vector<Tensor*>& v, const SegmentGraph& graph,
                     int heads, const std::string& name);
// y (Nq,C), Nq the rows that the graph asks for; q, k, v (N,C). The graph must outlive the step.
Tensor* lsh_attention(Tape& tape, Tensor* q, Tensor* k, Tensor* v, Tensor* rotations, const SegmentGraph& graph,
                      std::int64_t rows, const LshRule& rule, const std::string& name);
// (B block,2C) the rows of sorted blocks. The graph must outlive the step.
Tensor* sinkhorn(Tape& tape, Tensor* q, Tensor* kv, const SegmentGraph& graph, const SinkhornRule& rule,
                 const std::string& name);
Tensor* gather_rows(Tape& tape, Tensor* x, Ints rows, const std::string& name);
Tensor* replace_rows(Tape& tape, Tensor* x, Ints which, Tensor* u, const std::string& name);
// y (M,2C) = [x[first[m]] x[second[m]]]; neither list names a row of x twice.
Tensor* side_by_side(Tape& tape, Tensor* x, std::vector<int> first, std::vector<int> second, const std::string& name);
// (N,2C): [x x], for keys that are the values
Tensor* twice(Tape& tape, Tensor* x, const std::string& name);
// (B,C): the maximum of the rows [first[b], first[b+1]) in each channel; first[0] is 0, first[B] the number of rows.
Tensor* max_rows(Tape& tape, Tensor* x, Ints first, const std::string& name);
Tensor* normalise(Tape& tape, Tensor* x, const std::string& name, int heads = 1);
// (N,heads R), unrounded
Tensor* head_scores(Tape& tape, Tensor* x, Tensor* p, int heads, double scale, const std::string& name);
// t is from head_scores with the same scale; x is null if the kind has no norm.
Tensor* feature_map(Tape& tape, Tensor* t, Tensor* x, int heads, double scale, FeatureKind kind,
                    const std::string& name);
Tensor* vmf_sample(Tape& tape, Tensor* mu, Tensor* w, Tensor* e, const std::string& name);
Tensor* gaussian_sample(Tape& tape, Tensor* x, Tensor* e, const std::string& name);
// (B); if `apart`, (B,Z): one term for each number. If prior is null, it is N(0, 1).
Tensor* gaussian_kl(Tape& tape, Tensor* x, Tensor* prior, const std::string& name, bool apart = false);
Tensor* at_least(Tape& tape, Tensor* x, double least, const std::string& name);
// coupling(): y (B,Z) of x (B,Z) by st (B,2 (Z/2)), and the log of its determinant, (B). log_det(): log |det w|, (1).
struct Coupled {
    Tensor *y, *log_det;
};
Coupled coupling(Tape& tape, Tensor* x, Tensor* st, const std::string& name);
Tensor* log_det(Tape& tape, Tensor* w, const std::string& name);
// (B)
Tensor* flow_kl(Tape& tape, Tensor* x, Tensor* e, Tensor* u, Tensor* log_dets, Tensor* log_det,
                const std::string& name);
// q (B,Z): the nearest codes to y (B,Z), and code (B,groups): their numbers. No gradient flows through either.
struct NearestCode {
    Tensor *q, *code;
};
NearestCode nearest_code(Tape& tape, Tensor* y, Tensor* codes, int groups, const std::string& name);
Tensor* nearest_level(Tape& tape, Tensor* t, int levels, const std::string& name);  // no gradient either
Tensor* straight_through(Tape& tape, Tensor* y, Tensor* q, const std::string& name);
// (B): weight |y - q|^2; no gradient flows to q.
Tensor* distance(Tape& tape, Tensor* y, Tensor* q, double weight, const std::string& name);
// (1): sum_n weight_n loss_n, weights (N) constants; b may be null. The forward computes the gradients of those of h, w
// and b that need one; if only losses are needed, token_losses() is three times cheaper. `losses`, if not null,
// receives the losses (N) for reading, without a gradient. Label smoothing is part of both.
Tensor* cross_entropy(Tape& tape, Tensor* h, Tensor* w, Tensor* b, Ints targets, Tensor* weights,
                      const std::string& name, Tensor** losses = nullptr, double smoothing = 0);
// (N): the loss of every row, without smoothing and without a gradient.
Tensor* token_losses(Tape& tape, Tensor* h, Tensor* w, Tensor* b, Ints targets, const std::string& name);
// z (J,K): the logits of choices, each a slot (a row of h) and a token; lse (M,K): for each row, the log of the sum of
// exp of all its logits. h is (M,E), or (M,K E) with K rows for each slot. slots (J) and groups (M) ascend. b and bias
// (G,V) may be null; groups is read only with bias.
struct ChosenLogits {
    Tensor *z, *lse;
};
ChosenLogits chosen_logits(Tape& tape, Tensor* h, Tensor* w, Tensor* b, Tensor* bias, Ints groups, Ints slots,
                           Ints tokens, const std::string& name);
// (B): each document's loss over the tokens that its slots ask for. Document g has the slots [first[g], first[g+1]),
// slot m the choices [begin[m], begin[m+1]): first (B+1) from 0 to M, begin (M+1) from 0 to J. shares (J) are
// constants.
struct SlotChoices {
    Ints first, begin;
    Tensor* shares;
};
// mix (M,K), or (B,K) if joint, may be null if K is 1. place (M) may be null, and is null if joint.
Tensor* slot_loss(Tape& tape, const ChosenLogits& logits, Tensor* mix, Tensor* place, const SlotChoices& choices,
                  bool joint, const std::string& name);
// (1)
Tensor* weighted_sum(Tape& tape, Tensor* x, Tensor* weights, const std::string& name);

struct FeatureDraw {
    bool orthogonal = true;  // blocks of D orthogonal rows in every head; otherwise independent rows
    bool regular = false;    // every row has length sqrt(D); otherwise that of a normal vector
    double deviation = 1;    // 1 / sigma for the kernel exp(-|x - y|^2 / (2 sigma^2)) of rfa
};
// p(R,heads D) of head_scores: random rows w_r for each head; each number `draw` gives other rows.
std::vector<double> random_features(int R, int heads, int D, const FeatureDraw& rule, std::uint64_t seed,
                                    const std::string& name, std::uint32_t draw = 0);

// The cosines and sines of positions 0..P-1 for heads of size D: row p is cos(p t_0), sin(p t_0), cos(p t_1) ...,
// t_i = base^(-2i/D).                                                          Su et al. 2021, equation 15
std::vector<double> make_rotary_table(int P, int D, double base = 10000);

}  // namespace masquerade
