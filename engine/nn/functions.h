// SPDX-License-Identifier: MIT
// Every op as a call on the tape: it computes its results at once, and leaves a record for the backward. Sizes and
// formulas: engine/ops/ops.h.
#pragma once
#include "engine/ops/ops.h"
#include "engine/tape/tape.h"

namespace masquerade {

// y(N,O) = x(N,I) w(O,I)^T + b(O); b may be null
Tensor* linear(Tape& tape, Tensor* x, Tensor* w, Tensor* b, const std::string& name);
// linear() with y in the arithmetic type of x: latents and logits must not be rounded to the storage type.
Tensor* linear_unrounded(Tape& tape, Tensor* x, Tensor* w, Tensor* b, const std::string& name);
// Returns x converted to `type`; x itself if it already has this type.
Tensor* convert(Tape& tape, Tensor* x, DType type, const std::string& name);
// Returns a copy of the numbers of x in another shape.
Tensor* reshape(Tape& tape, Tensor* x, const Shape& shape, const std::string& name);
Tensor* layernorm(Tape& tape, Tensor* x, Tensor* w, Tensor* b, double eps, const std::string& name);
Tensor* rms_norm(Tape& tape, Tensor* x, Tensor* w, double eps, const std::string& name);
Tensor* tanh(Tape& tape, Tensor* x, const std::string& name);
Tensor* silu(Tape& tape, Tensor* x, const std::string& name);
Tensor* squared_relu(Tape& tape, Tensor* x, const std::string& name);
// y(N,F) from x(N,2F)
Tensor* glu(Tape& tape, Tensor* x, GateKind kind, const std::string& name);
Tensor* gelu(Tape& tape, Tensor* x, GeluKind kind, const std::string& name);
// The two halves of a feed-forward network with gelu. linear_gelu() computes u(N,F) = x w^T + b and a = gelu(u);
// gelu_linear() computes y(N,C) = a w^T + b, and its backward the gradient of u.
struct Activation {
    Tensor *u, *a;
    GeluKind kind;
};
Activation linear_gelu(Tape& tape, Tensor* x, Tensor* w, Tensor* b, GeluKind kind, const std::string& name,
                       const std::string& gelu_name);
Tensor* gelu_linear(Tape& tape, const Activation& x, Tensor* w, Tensor* b, const std::string& name);
// Returns (N,C): column c of x times w[c].
Tensor* scale_columns(Tape& tape, Tensor* x, Tensor* w, const std::string& name);
Tensor* add(Tape& tape, Tensor* a, Tensor* b, const std::string& name);
// Returns x itself if the rate is 0 or the tape is not training.
Tensor* dropout(Tape& tape, Tensor* x, const RowNames& rows, float rate, const std::string& name);
// residual_norm() computes the end of each half of a post-LN block, layernorm(x + dropout(f)), in one pass.
// ResidualNames holds the names of its three tensors.
struct ResidualNames {
    std::string dropout, sum, norm;
};
Tensor* residual_norm(Tape& tape, Tensor* x, Tensor* f, const RowNames& rows, float rate, Tensor* w, Tensor* b,
                      double eps, const ResidualNames& names);
Tensor* embedding(Tape& tape, Ints ids, Tensor* w, const std::string& name);
// Rotates the first `columns` columns of x; rotary_table (P,D) is made by make_rotary_table().
Tensor* rotary(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table, int columns, const std::string& name);
// rotary() of linear(x, w, b), without a tensor in between.
Tensor* linear_rotary(Tape& tape, Tensor* x, Tensor* w, Tensor* b, Ints positions, Tensor* rotary_table, int columns,
                      const std::string& name);
// q (Nq,H D) has H heads; each tensor of kv is (Nk,2 G D), with G a divisor of H. The graph must outlive the step.
Tensor* attention(Tape& tape, Tensor* q, const std::vector<Tensor*>& kv, const SegmentGraph& graph, int heads,
                  float dropout_rate, const RowNames& query_rows, const std::string& name);
// Returns y (N,width), which the rows x read from a state of the keys that they see. pack[s], kv[s] and, for a gated
// pack, gate[s] belong to the keys of source s. If not null, `before` (B, state_numbers) is the state before the rows
// of each document, and `after` receives the state after these rows. The graph must outlive the step.
Tensor* state_attention(Tape& tape, Tensor* x, const std::vector<Tensor*>& pack, const std::vector<Tensor*>& kv,
                        int width, const SegmentGraph& graph, const StateRule& rule, const std::string& name,
                        Tensor* before = nullptr, Tensor** after = nullptr, const std::vector<Tensor*>& gate = {});
int state_numbers(int width, const StateRule& rule);
// Returns y (Nq,C) from q (Nq,C), which has the arithmetic type, e (2 reach + 1,C), and the values v[s] (Nk,C) of each
// key source s. The graph must outlive the step.
Tensor* local_lambda(Tape& tape, Tensor* q, Tensor* e, const std::vector<Tensor*>& v, const SegmentGraph& graph,
                     int heads, const std::string& name);
// Returns y (Nq,C); q, k, v are (N,C). `rows` is Nq, the number of query rows of the graph. The graph must outlive the
// step.
Tensor* lsh_attention(Tape& tape, Tensor* q, Tensor* k, Tensor* v, Tensor* rotations, const SegmentGraph& graph,
                      std::int64_t rows, const LshRule& rule, const std::string& name);
// Returns the rows of the sorted blocks (B block,2C). The graph must outlive the step.
Tensor* sinkhorn(Tape& tape, Tensor* q, Tensor* kv, const SegmentGraph& graph, const SinkhornRule& rule,
                 const std::string& name);
Tensor* gather_rows(Tape& tape, Tensor* x, Ints rows, const std::string& name);
Tensor* replace_rows(Tape& tape, Tensor* x, Ints which, Tensor* u, const std::string& name);
// Row m of y (M,2C) is row first[m] of x, then row second[m] of x. Neither list contains a row twice.
Tensor* side_by_side(Tape& tape, Tensor* x, std::vector<int> first, std::vector<int> second, const std::string& name);
// Returns [x x] (N,2C), if the same numbers are keys and values.
Tensor* twice(Tape& tape, Tensor* x, const std::string& name);
// Row b of the result (B,C) is the maximum of the rows [first[b], first[b+1]) of x in each column; first[0] is 0,
// first[B] the number of rows.
Tensor* max_rows(Tape& tape, Tensor* x, Ints first, const std::string& name);
Tensor* normalise(Tape& tape, Tensor* x, const std::string& name, int heads = 1);
// Returns (N,heads R), in the arithmetic type.
Tensor* head_scores(Tape& tape, Tensor* x, Tensor* p, int heads, double scale, const std::string& name);
// t is the result of head_scores() with the same scale; x is null if the features of this kind do not depend on |x|.
Tensor* feature_map(Tape& tape, Tensor* t, Tensor* x, int heads, double scale, FeatureKind kind,
                    const std::string& name);
Tensor* vmf_sample(Tape& tape, Tensor* mu, Tensor* w, Tensor* e, const std::string& name);
Tensor* gaussian_sample(Tape& tape, Tensor* x, Tensor* e, const std::string& name);
// Returns (B) or, if `apart` is set, (B,Z): one term for each number. A null prior is N(0, 1).
Tensor* gaussian_kl(Tape& tape, Tensor* x, Tensor* prior, const std::string& name, bool apart = false);
Tensor* at_least(Tape& tape, Tensor* x, double least, const std::string& name);
// coupling() computes y (B,Z) from x (B,Z) and st (B,2 (Z/2)), and the log of its Jacobian determinant (B). log_det()
// computes log |det w| (1).
struct Coupled {
    Tensor *y, *log_det;
};
Coupled coupling(Tape& tape, Tensor* x, Tensor* st, const std::string& name);
Tensor* log_det(Tape& tape, Tensor* w, const std::string& name);
// Returns (B).
Tensor* flow_kl(Tape& tape, Tensor* x, Tensor* e, Tensor* u, Tensor* log_dets, Tensor* log_det,
                const std::string& name);
// q (B,Z): the codes nearest to y (B,Z); code (B,groups): the numbers of these codes. No gradient flows through q or
// code.
struct NearestCode {
    Tensor *q, *code;
};
NearestCode nearest_code(Tape& tape, Tensor* y, Tensor* codes, int groups, const std::string& name);
Tensor* nearest_level(Tape& tape, Tensor* t, int levels, const std::string& name);  // without gradient
Tensor* straight_through(Tape& tape, Tensor* y, Tensor* q, const std::string& name);
// Returns weight |y - q|^2 (B); q has no gradient.
Tensor* distance(Tape& tape, Tensor* y, Tensor* q, double weight, const std::string& name);
// Returns sum_n weight_n loss_n (1); the weights (N) are constants, and b may be null. The forward already computes the
// gradients of h, w and b, as far as they are needed; if only losses are needed, token_losses() is three times cheaper.
// If `losses` is not null, it receives the losses (N), without a gradient. Sum and losses include label smoothing.
Tensor* cross_entropy(Tape& tape, Tensor* h, Tensor* w, Tensor* b, Ints targets, Tensor* weights,
                      const std::string& name, Tensor** losses = nullptr, double smoothing = 0);
// Returns the loss of every row (N), without smoothing and without a gradient.
Tensor* token_losses(Tape& tape, Tensor* h, Tensor* w, Tensor* b, Ints targets, const std::string& name);
// The logits of J choices; a choice is a slot and a token. h is (M,K E): each of M slots has K rows of E numbers.
// z (J,K): the logits of the choices in each of the K rows of their slot. lse (M,K): for each row, the log of the sum
// of exp of all its logits. slots (J) and groups (M) ascend. b and bias (G,V) may be null; groups is read only if there
// is a bias.
struct ChosenLogits {
    Tensor *z, *lse;
};
ChosenLogits chosen_logits(Tape& tape, Tensor* h, Tensor* w, Tensor* b, Tensor* bias, Ints groups, Ints slots,
                           Ints tokens, const std::string& name);
// The target tokens of slot_loss(). Document g has the slots [first[g], first[g+1]), slot m the choices
// [begin[m], begin[m+1]): first (B+1) ascends from 0 to M, begin (M+1) from 0 to J. shares (J), the label weights of
// the choices, are constants.
struct SlotChoices {
    Ints first, begin;
    Tensor* shares;
};
// Returns the loss of each document (B). mix is (M,K) or, if joint, (B,K); it may be null if K is 1. place (M) may be
// null; if joint, it must be null.
Tensor* slot_loss(Tape& tape, const ChosenLogits& logits, Tensor* mix, Tensor* place, const SlotChoices& choices,
                  bool joint, const std::string& name);
// Returns sum_n weights_n x_n (1).
Tensor* weighted_sum(Tape& tape, Tensor* x, Tensor* weights, const std::string& name);

struct FeatureDraw {
    bool orthogonal = true;  // blocks of D orthogonal rows in every head; otherwise independent rows
    bool regular = false;    // every row has length sqrt(D); otherwise the length of a normal random vector
    double deviation = 1;    // 1 / sigma for the kernel exp(-|x - y|^2 / (2 sigma^2)) of rfa
};
// Returns p(R,heads D) for head_scores(): R random rows w_r for each head. Each value of `draw` gives different rows.
std::vector<double> random_features(int R, int heads, int D, const FeatureDraw& rule, std::uint64_t seed,
                                    const std::string& name, std::uint32_t draw = 0);

// Returns the cosines and sines of positions 0..P-1, for heads of size D: row p is cos(p t_0), sin(p t_0), cos(p t_1)
// ..., t_i = base^(-2i/D).                                                          Su et al. 2021, equation 15
std::vector<double> make_rotary_table(int P, int D, double base = 10000);

}  // namespace masquerade
