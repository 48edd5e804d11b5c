// SPDX-License-Identifier: MIT
// The ops of a forward as functions on a tape. Each function computes its results at once and appends a record to the
// tape, from which backward() computes the gradients. engine/ops/ops.h has the formulas and explains the sizes (N, C).
#pragma once
#include "engine/ops/ops.h"
#include "engine/tape/tape.h"

namespace masquerade {

// Returns y(N,O) = x(N,I) w(O,I)^T + b(O). b may be null.
Tensor* linear(Tape& tape, Tensor* x, Tensor* w, Tensor* b, const std::string& name);
// Like linear(), but the result is f32 if x is bf16. Latents and logits must not be rounded to bf16.
Tensor* linear_unrounded(Tape& tape, Tensor* x, Tensor* w, Tensor* b, const std::string& name);
// Returns x converted to `type`, or x itself if x already has this type.
Tensor* convert(Tape& tape, Tensor* x, DType type, const std::string& name);
// Returns a copy of the numbers of x in another shape.
Tensor* reshape(Tape& tape, Tensor* x, const Shape& shape, const std::string& name);
Tensor* layernorm(Tape& tape, Tensor* x, Tensor* w, Tensor* b, double eps, const std::string& name);
Tensor* rms_norm(Tape& tape, Tensor* x, Tensor* w, double eps, const std::string& name);
Tensor* tanh(Tape& tape, Tensor* x, const std::string& name);
Tensor* silu(Tape& tape, Tensor* x, const std::string& name);
Tensor* squared_relu(Tape& tape, Tensor* x, const std::string& name);
// Returns y(N,F) = g(a) b, multiplied elementwise. A row of x(N,2F) holds a, then b, and `kind` names the activation g.
Tensor* glu(Tape& tape, Tensor* x, GateKind kind, const std::string& name);
Tensor* gelu(Tape& tape, Tensor* x, GeluKind kind, const std::string& name);
// The two linear layers of a feed-forward part with gelu, each with its own w and b. linear_gelu() computes
// u(N,F) = x w^T + b and a = gelu(u). gelu_linear() returns y(N,C) = a w^T + b. The backward of gelu_linear() includes
// the backward of gelu: it computes the gradient of u, and no gradient of a.
struct Activation {
    Tensor *u, *a;
    GeluKind kind;
};
Activation linear_gelu(Tape& tape, Tensor* x, Tensor* w, Tensor* b, GeluKind kind, const std::string& name,
                       const std::string& gelu_name);
Tensor* gelu_linear(Tape& tape, const Activation& x, Tensor* w, Tensor* b, const std::string& name);
// Returns x(N,C) with each column c multiplied by w[c].
Tensor* scale_columns(Tape& tape, Tensor* x, Tensor* w, const std::string& name);
Tensor* add(Tape& tape, Tensor* a, Tensor* b, const std::string& name);
// Returns x itself if the rate is 0 or the tape is not training.
Tensor* dropout(Tape& tape, Tensor* x, const RowNames& rows, float rate, const std::string& name);
// residual_norm() computes layernorm(x + dropout(f)) as one op. In a post-norm layer, f is the result of attention or
// of the feed-forward part. ResidualNames names dropout(f), the sum, and the norm of the sum. residual_norm() stores no
// tensor for dropout(f), but ResidualNames::dropout determines the random numbers.
struct ResidualNames {
    std::string dropout, sum, norm;
};
Tensor* residual_norm(Tape& tape, Tensor* x, Tensor* f, const RowNames& rows, float rate, Tensor* w, Tensor* b,
                      double eps, const ResidualNames& names);
Tensor* embedding(Tape& tape, Ints ids, Tensor* w, const std::string& name);
// Applies the rotary embedding to the first `columns` columns of x. rotary_table (P,D) holds the numbers of
// make_rotary_table() for P positions and heads of width D. Row n of x has the position positions[n].
Tensor* rotary(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table, int columns, const std::string& name);
// Returns rotary() of linear(x, w, b), but does not store the result of linear().
Tensor* linear_rotary(Tape& tape, Tensor* x, Tensor* w, Tensor* b, Ints positions, Tensor* rotary_table, int columns,
                      const std::string& name);
// The projections of self-attention: q (N,Q) = linear_rotary(x, wq, bq) with all columns rotated, and kv (N,K) =
// linear_rotary(x, wkv, bkv) with `turned` columns rotated.
struct QueryKeyValue {
    Tensor *q = nullptr, *kv = nullptr;
};
QueryKeyValue query_key_value(Tape& tape, Tensor* x, Tensor* wq, Tensor* bq, Tensor* wkv, Tensor* bkv,
                              Tensor* rotary_table, Ints positions, int turned, const std::string& query_name,
                              const std::string& key_value_name);
// Softmax attention. The graph is the mask. q (Nq,H D) holds the queries of H = `heads` heads of width D. kv[s]
// (Nk,2 G D) holds the rows of key source s of the graph, that is, the key rows of the segments with
// KeySegment::source = s. Each row holds the keys of G heads, then their values. G divides H. The graph must outlive
// the step.
Tensor* attention(Tape& tape, Tensor* q, const std::vector<Tensor*>& kv, const SegmentGraph& graph, int heads,
                  float dropout_rate, const RowNames& query_rows, const std::string& name);
// Attention through a state of bounded size (engine/math/state.h). The state absorbs the keys that a row of x sees, and
// row n of the result y (N,width) is what row n of x reads from the state. The graph must outlive the step.
//   pack[s]   how much of each key of key source s the state absorbs
//   kv[s]     the values, or the keys and values, of key source s
//   gate[s]   the gates of the keys of key source s; if rule.pack is not gated, `gate` is empty
//   before    null, or a tensor whose row b is the state before the first row of document b. If `before` is not null,
//             the backward throws Error.
//   after     null, or *after becomes a tensor whose row b is the state after the last row of document b
// StateAttention::Taken (engine/nn/attention/state.h) lists the shapes of pack, kv and gate. The shape of before
// and after is (documents, state_numbers()).
Tensor* state_attention(Tape& tape, Tensor* x, const std::vector<Tensor*>& pack, const std::vector<Tensor*>& kv,
                        int width, const SegmentGraph& graph, const StateRule& rule, const std::string& name,
                        Tensor* before = nullptr, Tensor** after = nullptr, const std::vector<Tensor*>& gate = {});
std::int64_t state_numbers(int width, const StateRule& rule);
// The local positional lambda (formula: engine/nn/attention/lambda.cpp). Returns y (Nq,C). q (Nq,C) has the arithmetic
// type A (ops.h). v[s] (Nk,C) holds the values of the Nk rows of key tensor s of the graph. e is (2 reach + 1,C): row
// reach + j - i is for query position i and key position j. The graph must outlive the step.
Tensor* local_lambda(Tape& tape, Tensor* q, Tensor* e, const std::vector<Tensor*>& v, const SegmentGraph& graph,
                     int heads, const std::string& name);
// Attention within hash buckets. Returns y (Nq,C); q, k and v are (N,C). `rotations` holds the random vectors for
// hashing (lsh_attention_forward in ops.h). `rows` is Nq, the number of query rows of the graph. The graph must outlive
// the step.
Tensor* lsh_attention(Tape& tape, Tensor* q, Tensor* k, Tensor* v, Tensor* rotations, const SegmentGraph& graph,
                      std::int64_t rows, const LshRule& rule, const std::string& name);
// Returns the keys and values of the sorted blocks, (U * rule.block, 2C). A sorted block is a weighted mean of blocks
// of rule.block rows of kv (engine/nn/attention/sinkhorn.cpp). U = most_blocks() (engine/ops/block_plan.h) is an upper
// bound of the number of blocks. The graph must outlive the step.
Tensor* sinkhorn(Tape& tape, Tensor* q, Tensor* kv, const SegmentGraph& graph, const SinkhornRule& rule,
                 const std::string& name);
Tensor* gather_rows(Tape& tape, Tensor* x, Ints rows, const std::string& name);
Tensor* replace_rows(Tape& tape, Tensor* x, Ints which, Tensor* u, const std::string& name);
// Row n of the result (N,C) is row n of b (N,C) if parts[n] is 1, else row n of a (N,C). The sizes of the tensors do
// not depend on `parts`, so batches that differ only in `parts` need the same memory.
Tensor* rows_of_parts(Tape& tape, Tensor* a, Tensor* b, const std::vector<char>& parts, const std::string& name);
// Row m of the result (M,2C) is row first[m] of x followed by row second[m] of x. Neither list contains a row twice.
Tensor* side_by_side(Tape& tape, Tensor* x, std::vector<int> first, std::vector<int> second, const std::string& name);
// Returns [x x] (N,2C): each row of x followed by a copy of the row. Used if x serves as both keys and values.
Tensor* twice(Tape& tape, Tensor* x, const std::string& name);
// Row b of the result (B,C) is, in each column, the maximum of the rows first[b] to first[b+1] - 1 of x. If first[b+1]
// is equal to first[b], row b is 0. first[0] is 0, and first[B] is the number of rows of x.
Tensor* max_rows(Tape& tape, Tensor* x, Ints first, const std::string& name);
Tensor* normalise(Tape& tape, Tensor* x, const std::string& name, int heads = 1);
// Returns the dot products of each head of each row of x with R vectors for that head, times `scale`: (N,heads R). The
// result is f32 if x is bf16. Row r of p (R,C) holds vector r of every head.
Tensor* head_scores(Tape& tape, Tensor* x, Tensor* p, int heads, double scale, const std::string& name);
// Returns the features (engine/math/features.h) that are computed from t (N,heads R), R dot products for each head.
// Usually, t is the result of head_scores() for x. If the features of this kind depend on |x|, x must be given, and
// `scale` must be the scale of head_scores(). Otherwise x may be null.
Tensor* feature_map(Tape& tape, Tensor* t, Tensor* x, int heads, double scale, FeatureKind kind,
                    const std::string& name);
Tensor* vmf_sample(Tape& tape, Tensor* mu, Tensor* w, Tensor* e, const std::string& name);
Tensor* gaussian_sample(Tape& tape, Tensor* x, Tensor* e, const std::string& name);
// Returns the KL divergence between a Gaussian posterior and its prior for each document (B). If `apart` is true,
// returns the terms of the divergence instead, one for each number of the latent (B,Z). A row of x (B,2Z) holds the
// means of the posterior, then its log variances. `prior` has the same shape. If `prior` is null, the prior is N(0, 1).
Tensor* gaussian_kl(Tape& tape, Tensor* x, Tensor* prior, const std::string& name, bool apart = false);
Tensor* at_least(Tape& tape, Tensor* x, double least, const std::string& name);
// Layers of a normalising flow. coupling() computes y (B,Z) from x (B,Z): it scales and shifts the last Z/2 numbers of
// each row, and copies the other numbers. A row of st (B,2 (Z/2)) holds Z/2 numbers from which the scales are computed,
// then Z/2 shifts (formula: coupling_forward in ops.h). Its log_det (B) is, for each row, the log determinant of the
// derivative of y with respect to x. log_det() returns log |det w| (1) of a square matrix w.
struct WithLogDet {
    Tensor *value, *log_det;
};
WithLogDet coupling(Tape& tape, Tensor* x, Tensor* st, const std::string& name);
Tensor* log_det(Tape& tape, Tensor* w, const std::string& name);
// actnorm() returns y = s x + b, where each column has its own s and b. It also returns the sum of log |s| over the
// columns (1), which is the log determinant for every row. lu_matrix() returns the matrix P L (U + diag(s)) (Z,Z) and
// its log determinant (1). `lu` (Z,Z) holds L below its diagonal, s on the diagonal and U above it; `order` (Z) is the
// permutation P (formula: lu_matrix_forward in ops.h).
WithLogDet actnorm(Tape& tape, Tensor* x, Tensor* s, Tensor* b, const std::string& name);
WithLogDet lu_matrix(Tape& tape, Tensor* lu, Tensor* order, const std::string& name);
// Returns an estimate of the KL divergence between a Gaussian posterior and its prior for each document (B). The prior
// is a normalising flow (formula: flow_kl_forward in ops.h). A row of x (B,2Z) holds the means of the posterior, then
// its log variances. e (B,Z) is the noise of a sample, and u (B,Z) is the result of the flow for this sample. The log
// determinant of row b is log_dets[b] (B) plus log_det (1), which is the same for all rows.
Tensor* flow_kl(Tape& tape, Tensor* x, Tensor* e, Tensor* u, Tensor* log_dets, Tensor* log_det,
                const std::string& name);
// Vector quantisation. The columns of y (B,Z) are cut into `groups` groups. For each group, q (B,Z) holds the nearest
// row of the group's codebook, and code (B,groups) holds the index of this row in the codebook. q and code have no
// gradient.
struct NearestCode {
    Tensor *q, *code;
};
NearestCode nearest_code(Tape& tape, Tensor* y, Tensor* codes, int groups, const std::string& name);
Tensor* nearest_level(Tape& tape, Tensor* t, int levels, const std::string& name);  // the result has no gradient
Tensor* straight_through(Tape& tape, Tensor* y, Tensor* q, const std::string& name);
// Returns weight |y - q|^2 for each row (B). q receives no gradient.
Tensor* distance(Tape& tape, Tensor* y, Tensor* q, double weight, const std::string& name);
// Returns sum_n weight_n loss_n (1), where loss_n is the cross-entropy loss of row n of h, with label smoothing. The
// weights (N) are constants, and b may be null. If `losses` is not null, it receives all loss_n (N), which have no
// gradient. If gradients of h, w or b are needed, the forward already computes them. token_losses() computes no
// gradients and is therefore three times cheaper.
Tensor* cross_entropy(Tape& tape, Tensor* h, Tensor* w, Tensor* b, Ints targets, Tensor* weights,
                      const std::string& name, Tensor** losses = nullptr, double smoothing = 0);
// Returns the cross-entropy loss of every row of h (N), without label smoothing and without a gradient.
Tensor* token_losses(Tape& tape, Tensor* h, Tensor* w, Tensor* b, Ints targets, const std::string& name);
// The logits of J choices in an insertion decoder. Choice j is to insert the token tokens[j] into the slot slots[j], a
// place between two words. Each of the M slots has K vectors, and vector v of slot m gives V logits:
// v w^T + b + bias[groups[m]].
//   h (M,K E), w (V,E)    a row of h holds the K vectors v of a slot, E numbers each
//   b (V), bias (G,V)     may be null; if bias is null, groups is ignored
//   groups (M), slots (J) in ascending order
//   z (J,K)               result: the logit of each choice for each vector of the choice's slot
//   lse (M,K)             result: for each vector, the log of the sum of exp of its V logits
struct ChosenLogits {
    Tensor *z, *lse;
};
ChosenLogits chosen_logits(Tape& tape, Tensor* h, Tensor* w, Tensor* b, Tensor* bias, Ints groups, Ints slots,
                           Ints tokens, const std::string& name);
// The targets of slot_loss(): J choices, each a slot and a token. Document g has the slots first[g] to first[g+1] - 1
// of M slots, and slot m has the choices begin[m] to begin[m+1] - 1. first (B+1) ascends from 0 to M, and begin (M+1)
// from 0 to J. shares (J) holds the weight of each choice in the loss; these weights are constants.
struct SlotChoices {
    Ints first, begin;
    Tensor* shares;
};
// Returns the loss of each document (B): minus the weighted sum of the log-probabilities of the document's choices
// (formula: slot_loss_forward in ops.h).
//   mix     logits of the K mixture components: (B,K) if `joint` is true, else (M,K); may be null if K is 1
//   place   logits of the slots (M); may be null, and must be null if `joint` is true
Tensor* slot_loss(Tape& tape, const ChosenLogits& logits, Tensor* mix, Tensor* place, const SlotChoices& choices,
                  bool joint, const std::string& name);
// Returns sum_n weights_n x_n (1).
Tensor* weighted_sum(Tape& tape, Tensor* x, Tensor* weights, const std::string& name);

struct FeatureDraw {
    // A head of width D gets its vectors in groups of D. If `orthogonal` is true, the vectors of one group are
    // orthogonal to each other; otherwise, all vectors are independent.
    bool orthogonal = true;
    bool regular = false;  // every vector has length sqrt(D); false: each has the length of a normal random vector
    double deviation = 1;  // factor of all vectors; with 1 / sigma, rfa has the kernel exp(-|x - y|^2 / (2 sigma^2))
};
// Returns random vectors for head_scores(), as p(R,heads D): R vectors of D numbers for each head. Each value of `draw`
// gives different vectors.
std::vector<double> random_features(int R, int heads, int D, const FeatureDraw& rule, std::uint64_t seed,
                                    const std::string& name, std::uint32_t draw = 0);

// Returns the rotary table (P,D) of the positions 0 to P-1, for heads of width D. Row p is cos(p t_0), sin(p t_0),
// cos(p t_1), sin(p t_1) ..., with t_i = base^(-2i/D).                              Su et al. 2021, equation 15
std::vector<double> make_rotary_table(int P, int D, double base = 10000);

}  // namespace masquerade
