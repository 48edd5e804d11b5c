// SPDX-License-Identifier: MIT
// The list of all ops. Each OP line below becomes a declaration in namespaces cpu and cuda, a function pointer in the
// table of each device, and a function object with the op's name, which runs the op on the device of its tensors
// (ops/table.h). Parameter names matter, because records on the tape (tape/op_record.h) and tests pass tensors by name.
// Outputs come after inputs, the main output first. A backward has a parameter View dy for each output y that has a
// gradient, and Grad dx for each input x that receives a gradient.
//
// The contract of every op:
// - It writes all elements of its outputs. It changes no input, but an op without a backward may update a tensor.
// - It stores each gradient if Grad::add is false, and adds to it if Grad::add is true. It skips a Grad that is absent.
// - It can be captured as a CUDA graph: it uses one stream, copies nothing back to the host, and allocates no device
//   memory except workspaces.
// - It checks what the string of its OP line cannot state: sizes that depend on a rule, and the numbers in lists.
//
// The string of an OP line states the shapes and types that checks.cpp checks at each call: "x y(N,C) w b?(C)A" means
// that x and y are (N,C) of type S, and that w and b are (C) of type A; b? may be absent. The type E means S or A. A
// size is a product of digits and letters: "2Z", "HD". An int parameter gives its value to the letter with which its
// name begins: H is the value of `heads`, and G is the value of `groups`. (*) is any shape, but the same one for all
// tensors with (*). A list has one size, its length. A gradient dx has the shape and type of x, unless the string
// states dx itself. An OP line without a string uses the string of the line before. If that line has no string either,
// the op itself checks all shapes.
//
// S is the storage type of activations and matrices (f32, bf16, f64 or c128; c128 is complex, for derivatives by the
// complex step). A is the arithmetic type of S (f32, f32, f64 and c128, in this order), and also the type of biases,
// norms, statistics, losses, latents and the noise of latents. Sizes: N and M are numbers of rows (tokens), C width, I
// and O input and output width, V vocabulary, B documents, Z numbers per latent, H heads, D = C / H columns per head.
#ifndef OP
#include "engine/ops/table.h"
#else

// y(M,O) = x(M,I) w(O,I)^T + b(O); b may be absent. x and w have the storage type S, and b has the arithmetic type A
// (f32 if S is bf16). y and dy have either type; if y has type A, the result is not rounded to S.
OP(linear_forward, (View x, View w, View b, View y), "x(M,I) w(O,I) b?(O)A y(M,O)E dw(O,I)A")
// dx(M,I) = dy w,  dw(O,I) = dy^T x,  db(O) = column sums of dy. dw has the arithmetic type A (f32 in a bf16 model).
OP(linear_backward, (View dy, View x, View w, Grad dx, Grad dw, Grad db))

// y(N,C) = (x - mean) rstd w + b,  rstd = 1 / sqrt(variance + eps). w, b (C), mean and rstd (N) have the arithmetic
// type A (f32 in a bf16 model).                                                                          Ba et al. 2016
OP(layernorm_forward, (View x, View w, View b, double eps, View y, View mean, View rstd),
   "x y(N,C) w b(C)A mean rstd(N)A")
OP(layernorm_backward, (View dy, View x, View w, View mean, View rstd, Grad dx, Grad dw, Grad db))

// y(N,C) = x inverse w,  inverse = 1 / sqrt(mean(x^2) + eps). w (C) and inverse (N) have the arithmetic type A (f32 in
// a bf16 model).                                                                                 Zhang & Sennrich 2019
OP(rms_norm_forward, (View x, View w, double eps, View y, View inverse), "x y(N,C) w(C)A inverse(N)A")
OP(rms_norm_backward, (View dy, View x, View w, View inverse, Grad dx, Grad dw))

// y = x, converted to the type of y. Each of x and y has the storage type S or the arithmetic type A (f32 if S is
// bf16).
OP(convert_forward, (View x, View y), "x y(*)E")
OP(convert_backward, (View dy, Grad dx))

// y = tanh(x)
OP(tanh_forward, (View x, View y), "x y(*)")
OP(tanh_backward, (View dy, View y, Grad dx))

// y = x Phi(x). Phi is the normal distribution function or, if kind is tanh, an approximation of it by tanh.
//                                                                                               Hendrycks & Gimpel 2016
OP(gelu_forward, (View x, GeluKind kind, View y), "x y(*)")
OP(gelu_backward, (View dy, View x, GeluKind kind, Grad dx))

// y = x / (1 + exp(-x))                                                                       Elfwing et al. 2017
OP(silu_forward, (View x, View y), "x y(*)")
OP(silu_backward, (View dy, View x, Grad dx))

// y = max(x, 0)^2                                                                                  So et al. 2021
OP(squared_relu_forward, (View x, View y), "x y(*)")
OP(squared_relu_backward, (View dy, View x, Grad dx))

// y(N,F) = g(a) b. A row of x(N,2F) holds `a`, then b; g is the activation that `kind` names.            Shazeer 2020
OP(glu_forward, (View x, GateKind kind, View y), "x(N,2F) y(N,F)")
OP(glu_backward, (View dy, View x, GateKind kind, Grad dx))

// u(M,O) = x w^T + b,  a(M,O) = gelu(u);  b may be absent. The CPU computes `a` while u is in cache. There is no
// linear_gelu_backward: gelu_linear_backward computes du, and linear_backward, called with du as its dy, computes the
// rest.
OP(linear_gelu_forward, (View x, View w, View b, GeluKind kind, View u, View a), "x(M,I) w(O,I) b?(O)A u a(M,O)")
// The backward of a(M,I) = gelu(u) and y(M,O) = a w^T + b in one op. In the forward, linear_gelu_forward computes u and
// `a`, and linear_forward computes y.
//     du(M,I) = gelu'(u) (dy w),  dw = dy^T a,  db = column sums of dy
OP(gelu_linear_backward, (View dy, View u, View a, View w, GeluKind kind, Grad du, Grad dw, Grad db),
   "dy(M,O)E u a(M,I) w(O,I) dw(O,I)A db(O)A")

// y(N,C) = x(N,C) w(C), one factor per column. x and y have the storage type S, and w has the arithmetic type A (f32 if
// S is bf16).
OP(scale_columns_forward, (View x, View w, View y), "x y(N,C) w(C)A")
OP(scale_columns_backward, (View dy, View x, View w, Grad dx, Grad dw))

// y = a + b
OP(add_forward, (View a, View b, View y), "a b y(*)")
OP(add_backward, (View dy, Grad da, Grad db))

// y(N,C) = x keep / (1 - rate). keep is a random number, 0 or 1, which depends only on the stream, the document and
// position of the row (RowNames), and the column.
//                                                                                            Srivastava et al. 2014
OP(dropout_forward, (View x, RowNames rows, DropoutRule rule, View y), "x y(*)")
OP(dropout_backward, (View dy, RowNames rows, DropoutRule rule, Grad dx))

// s = x + dropout(f), y = layernorm(s), as in the ops dropout and layernorm. x, f, s and y (N,C) have the storage type
// S; w, b (C), mean and rstd (N) have the arithmetic type A (f32 if S is bf16).
OP(residual_norm_forward,
   (View x, View f, RowNames rows, DropoutRule rule, View w, View b, double eps, View y, View s, View mean, View rstd),
   "x f y s(N,C) w b(C)A mean rstd(N)A")
OP(residual_norm_backward,
   (View dy, View s, RowNames rows, DropoutRule rule, View w, View mean, View rstd, Grad dx, Grad df, Grad dw, Grad db))

// Row n of y(N,C) is row ids[n] of w(V,C).
OP(embedding_forward, (Ints ids, View w, View y), "ids(N) w(V,C) y(N,C) dw(V,C)A")
// Row v of dw(V,C) is the sum of those rows n of dy for which ids[n] = v, added in the order of n. dw has the
// arithmetic type A (f32 in a bf16 model).
OP(embedding_backward, (View dy, Ints ids, Grad dw))

// Rotary embedding of x(N,W). The first `columns` columns of x consist of heads of D columns, where D is the width of
// rotary_table (P,D). In each of these heads, the op rotates the pair of columns (2i, 2i+1) of row n by the angle
// p base^(-2i/D), for i = 0 .. D/2 - 1, where p is positions[n]. The op copies the other columns. Row p of rotary_table
// contains the cosines and sines of position p: cos, sin, cos, sin ...; the code that fills the table chooses `base`,
// usually 10000. rotary_table has the arithmetic type A (f32 in a bf16 model).
//                                                                                         Su et al. 2021, equation 34
OP(rotary_forward, (View x, Ints positions, View rotary_table, int columns, View y),
   "x y(N,W) positions(N) rotary_table(P,D)A")
OP(rotary_backward, (View dy, Ints positions, View rotary_table, int columns, Grad dx))
// y(M,O) = rotary(x(M,I) w(O,I)^T + b(O)), where rotary is the op rotary_forward; b may be absent. If y is f32 or bf16,
// the CPU rotates y while it is in cache. y and dy have the storage type S.
OP(linear_rotary_forward, (View x, View w, View b, Ints positions, View rotary_table, int columns, View y),
   "x(M,I) w(O,I) b?(O)A y(M,O) positions(M) rotary_table(P,D)A dw(O,I)A")
OP(linear_rotary_backward,
   (View dy, View x, View w, Ints positions, View rotary_table, int columns, Grad dx, Grad dw, Grad db))
// The projections of self-attention: q(M,Q) = rotary(x(M,I) wq(Q,I)^T + bq(Q)), and kv(M,K) = rotary(x wkv(K,I)^T +
// bkv(K)), of which only the first `turned` columns are rotated; bq and bkv may be absent. If wkv follows wq in memory,
// as it does in a model, a GPU computes both with one product.
OP(query_key_value_forward,
   (View x, View wq, View bq, View wkv, View bkv, View rotary_table, Ints positions, int turned, View q, View kv),
   "x(M,I) wq(Q,I) bq?(Q)A wkv(K,I) bkv?(K)A q(M,Q) kv(M,K) positions(M) rotary_table(P,D)A dwq(Q,I)A dwkv(K,I)A")
OP(query_key_value_backward, (View dq, View dkv, View x, View wq, View wkv, View rotary_table, Ints positions,
                              int turned, Grad dx, Grad dwq, Grad dbq, Grad dwkv, Grad dbkv))

// Softmax attention, for each head: y_i = sum_j p_ij v_j,  p_i = softmax_j(q_i . k_j / sqrt(D)) over the keys j that
// the graph lets row i see. If row i sees no key, y_i = 0. Dropout with the rate rule.dropout acts on the p_ij. There
// are Nq query rows and Nk key rows, H query heads and G key/value heads, all of D columns. H / G consecutive query
// heads share one key/value head.
//     q, y    (Nq,H D)
//     kv[s]   (Nk,2 G D), at most four tensors: a row holds the keys of G heads, then their values
//     lse     (Nq,H), of the arithmetic type A (f32 in a bf16 model): log sum_j exp(q_i . k_j / sqrt(D)), or minus
//             infinity if row i sees no key
//                                                       Vaswani et al. 2017, equation 1; Ainslie et al. 2023
OP(attention_forward, (View q, Views kv, const SegmentGraph& graph, AttentionRule rule, View y, View lse),
   "q y(N,C) lse(N,H)A")
OP(attention_backward,
   (View dy, View q, Views kv, View y, View lse, const SegmentGraph& graph, AttentionRule rule, Grad dq, Grads dkv))

// Attention through a state of R slots (engine/math/state.h), for each head. The slots absorb the keys that the graph
// lets row i see, and the values of these keys. Then row i of x reads the slots. There are Nq query rows and Nk key
// rows.
//     x        if rule.read is attend: the queries (Nq,C), of the storage type S; otherwise (Nq,H R), of the arithmetic
//              type A: for each head, R numbers that say how much of each slot the row reads
//     kv[s]    if rule.read is attend: keys, then values (Nk,2C), or rows that are both key and value (Nk,C);
//              otherwise values (Nk,C)
//     pack[s]  (Nk,H R): for each key and head, R numbers that say how much of the key each slot absorbs. The op
//              multiplies them by rule.scale. If rule.pack is pair, pack[s] is (Nk,H 2R): R numbers for the key of a
//              head, then R for its value
//     gate[s]  (Nk,H): the logit of each key's gate, which shrinks what the slots hold of earlier keys; only if
//              rule.pack is gated
//     before   row b is the state of document b before the first row of the document: StateShape::numbers() numbers
//              for each of the H heads
//     after    like before; row b is the state of document b after the last row of the document
// y is (Nq,C). before and after may each be absent. kv and y have type S; pack, gate, before and after have type A.
OP(state_attention_forward, (View x, Views pack, Views kv, Views gate, const SegmentGraph& graph, StateRule rule,
                             View before, View y, View after))
OP(state_attention_backward, (View dy, View x, Views pack, Views kv, Views gate, const SegmentGraph& graph,
                              StateRule rule, Grad dx, Grads dpack, Grads dkv, Grads dgate))

// For each head: y_i = sum_j (e_(j-i) . q_i) v_j. j runs over the keys that the graph lets row i see, that are in the
// segment of row i, and that are at most (W-1)/2 positions away. If QuerySegment::along is true, distances are counted
// in the whole document, and j may also be in other segments. e_d is the vector for the distance d, row d + (W-1)/2 of
// e. q (Nq,C) and de have the arithmetic type A (f32 if S is bf16); e (W,C), each v[s] (Nk,C) and y (Nq,C) have the
// storage type S.
OP(local_lambda_forward, (View q, View e, Views v, const SegmentGraph& graph, int heads, View y),
   "q(N,C)A e(W,C) y(N,C) de(W,C)A")
OP(local_lambda_backward,
   (View dy, View q, View e, Views v, const SegmentGraph& graph, int heads, Grad dq, Grad de, Grads dv))

// Attention within hash buckets, for each head:  y_i = sum_j p_ij v_j,  p_i = softmax_j(q_i . k_j / sqrt(D)). The key
// rows that a query segment sees form a list (list_plan.h). In each round, the rows of a list are hashed into buckets,
// sorted by bucket, and cut into chunks. Row i finds row j if, in at least one round, both rows are in the same bucket,
// and row j is in the chunk of row i or in the chunk before that chunk. j runs over the other rows that row i both sees
// and finds. If there is no such row, j is only i itself. Nq is the number of query rows of the graph.
// q, k, v (N,C) and y (Nq,C) have the storage type S; lse (Nq,H) and rotations (rounds * buckets / 2, C) have the
// arithmetic type A (f32 if S is bf16).                                                         Kitaev et al. 2020
OP(lsh_attention_forward,
   (View q, View k, View v, View rotations, const SegmentGraph& graph, LshRule rule, View y, View lse),
   "q k v(N,C) rotations(R,C)A y(M,C) lse(M,H)A")
OP(lsh_attention_backward, (View dy, View q, View k, View v, View rotations, View y, View lse,
                            const SegmentGraph& graph, LshRule rule, Grad dq, Grad dk, Grad dv))

// Sinkhorn sorting, for each head. A list of keys (list_plan.h) is cut into blocks of `block` keys, unless it has at
// most `block` keys; nothing is computed for such a list. Row t of block u of y is a weighted mean of row t of the
// blocks v of the list:
//     y[u, t] = sum_v w_uv kv[v, t],   w_uv = S_uv / sum_v' S_uv'
// Both sums run over the blocks that have a row t. If no block has a row t, the row of y is 0. S_uv starts as
// exp(q_u . k_v / (sqrt(D) temperature)), where q_u is the mean of block u of q (N,C), and k_v the mean of the keys of
// block v of kv (N,2C). Then the columns and the rows of S are normalised to sum 1, `iterations` times. If rows of a
// list see different keys, S is causal: only blocks v < u are mixed into block u (sinkhorn.cpp). y is (U block,2C) with
// U = most_blocks() (block_plan.h). Unused blocks of y are 0.
//                                                                            Tay et al. 2020, section 3
OP(sinkhorn_forward, (View q, View kv, const SegmentGraph& graph, SinkhornRule rule, View y), "q(N,C) kv(N,2C) y(U,2C)")
OP(sinkhorn_backward, (View dy, View q, View kv, const SegmentGraph& graph, SinkhornRule rule, Grad dq, Grad dkv))

// Dot products of each head h with R vectors p_r: y(N,H R)[n, hR+r] = scale sum_d x(N,C)[n, hD+d] p(R,C)[r, hD+d].
// x, p and dx have the storage type S, y has the arithmetic type A (f32 if S is bf16), and dp has either type.
OP(head_scores_forward, (View x, View p, int heads, double scale, View y), "x(N,HD) p(R,HD) y(N,HR)A dp(R,HD)E")
OP(head_scores_backward, (View dy, View x, View p, int heads, double scale, Grad dx, Grad dp))
// For each head of x(N,C): y(N,H F) contains F features of the head (engine/math/features.h) or, for some kinds
// (is_logarithm()), the logarithms of the features. Features are computed from t(N,H R), the R projections of each
// head, and from |scale x|. If the features of a kind do not depend on |x| (has_norm() is false), x may be absent. x
// has the storage type S; t and y have the arithmetic type A (f32 if S is bf16).
OP(feature_map_forward, (View t, View x, int heads, double scale, FeatureKind kind, View y), "t(N,HR)A x?(N,HD)")
OP(feature_map_backward, (View dy, View t, View x, int heads, double scale, FeatureKind kind, Grad dt, Grad dx))

// Row m of y(M,C) is row rows[m] of x(N,C). rows must not contain a row twice; for repeated rows, use embedding.
OP(gather_rows_forward, (View x, Ints rows, View y), "x(N,C) rows(M) y(M,C)")
// Row rows[m] of dx(N,C) is row m of dy; the other rows of dx are 0.
OP(gather_rows_backward, (View dy, Ints rows, Grad dx))

// Row n of y(N,C) is row which[n] of u(B,C) if which[n] >= 0, else row n of x(N,C). which(N) contains every row of u
// exactly once.
OP(replace_rows_forward, (View x, Ints which, View u, View y), "x y(N,C) which(N) u(B,C)")
OP(replace_rows_backward, (View dy, Ints which, Grad dx, Grad du))

// Row b of y(B,C) is the maximum, in each column, of the rows [first[b], first[b+1]) of x(N,C); 0 if there is no row.
// first (B+1) ascends from 0 to N.
OP(max_rows_forward, (View x, Ints first, View y), "x(N,C) y(B,C)")
// In each column c, dy[b, c] goes to one row of dx: the first row of [first[b], first[b+1]) that has the maximum. dx is
// 0 at the other rows.
OP(max_rows_backward, (View dy, View x, Ints first, Grad dx))

// Row rows[m] of y(N,C) becomes row m of x(M,C); the other rows of y are unchanged. Decoding uses this op to store keys
// and values in the KV cache. No backward.
OP(store_rows, (View x, Ints rows, View y), "y(N,C) x(M,C) rows(M)")

// Divides each head of a row by its norm: y = x inverse,  inverse(N,H) = 1 / max(|x|, 1e-6), where x is one head of Z
// numbers. inverse has the arithmetic type A (f32 in a bf16 model).
OP(normalise_forward, (View x, int heads, View y, View inverse), "x y(N,HZ) inverse(N,H)A")
OP(normalise_backward, (View dy, View y, View inverse, int heads, Grad dx))

// z(B,Z) = w mu + sqrt(1 - w^2) nu, a sample of the von Mises-Fisher distribution with mean direction mu(B,Z). The
// caller draws w(B). nu is the unit vector along e - (e.mu) mu, where e(B,Z) is normal noise, which has no gradient.
// All tensors have the arithmetic type A, which is never bf16.                          Davidson et al. 2018, section 3
OP(vmf_sample_forward, (View mu, View w, View e, View z), "mu e z(B,Z)A w(B)A")
OP(vmf_sample_backward, (View dz, View mu, View w, View e, Grad dmu, Grad dw))

// z(B,Z) = mu + exp(l / 2) e, where e(B,Z) is normal noise. A row of x(B,2Z) holds mu, then the log variance l, which
// is clamped to [-8, 8]. All tensors have the arithmetic type A, which is never bf16.             Kingma & Welling 2013
OP(gaussian_sample_forward, (View x, View e, View z), "x(B,2Z)A e z(B,Z)A")
OP(gaussian_sample_backward, (View dz, View x, View e, Grad dx))
// kl(B) = 1/2 sum((mu - m)^2 exp(-p) + exp(l - p) - (l - p) - 1), where l and p are clamped to [-8, 8]. A row of
// x(B,2Z) holds mu, then l; a row of prior(B,2Z) holds m, then p. If prior is absent, m = p = 0. If kl is (B,Z), it
// receives the terms of the sum, one for each column. All tensors have the arithmetic type A, which is never bf16.
OP(gaussian_kl_forward, (View x, View prior, View kl), "x prior?(B,2Z)A")
OP(gaussian_kl_backward, (View dkl, View x, View prior, Grad dx, Grad dprior))
// y = max(x, least); the gradient is 0 if x <= least. All tensors have the arithmetic type A, which is never bf16.
OP(at_least_forward, (View x, double least, View y), "x y(*)A")
OP(at_least_backward, (View dy, View x, double least, Grad dx))

// Affine coupling, a block of a flow. A row of x(B,Z) holds two parts, `a` and then b; b is the last Z/2 numbers
// (rounded down). A row of st(B,2 (Z/2)) holds r, then t. With s = 2 tanh(r / 2), a row of y(B,Z) holds `a`, then
// b exp(s) + t, and log_det(B) is the sum of s. All tensors have the arithmetic type A, which is never bf16.
//                                            Dinh et al. 2016, section 3; Kingma & Dhariwal 2018, section 3
OP(coupling_forward, (View x, View st, View y, View log_det), "x y(B,Z)A log_det(B)A")
OP(coupling_backward, (View dy, View dlog_det, View x, View st, Grad dx, Grad dst))
// log_det(1) = log |det w|, w(Z,Z); inverse(Z,Z) is the inverse of w; left(Z,Z) is scratch memory.
// dw = dlog_det inverse^T. All tensors have the arithmetic type A, which is never bf16.
OP(log_det_forward, (View w, View log_det, View left, View inverse), "w left inverse(Z,Z)A log_det(1)A")
OP(log_det_backward, (View dlog_det, View inverse, Grad dw))
// y(B,Z) = s x + b in each column; log_det(1) = sum log |s|, which is the same for every row. All tensors have the
// arithmetic type A, which is never bf16.                                           Kingma & Dhariwal 2018, section 3.1
OP(actnorm_forward, (View x, View s, View b, View y, View log_det), "x y(B,Z)A s b(Z)A log_det(1)A")
OP(actnorm_backward, (View dy, View dlog_det, View x, View s, Grad dx, Grad ds, Grad db))
// w(Z,Z) = P L (U + diag(s));  log_det(1) = sum log |s| = log |det w|. lu(Z,Z) holds L below its diagonal, s on it, and
// U above it; the diagonal of L is 1. order(Z), the permutation P, has no gradient: row i of w is row order[i] of the
// product L (U + diag(s)). All tensors have the arithmetic type A, which is never bf16.
//                                                                                   Kingma & Dhariwal 2018, section 3.2
OP(lu_matrix_forward, (View lu, View order, View w, View log_det), "lu w(Z,Z)A order(Z)A log_det(1)A")
OP(lu_matrix_backward, (View dw, View dlog_det, View lu, View order, Grad dlu))
// kl(B) = log q(z) - log p(z) at one sample z = mu + exp(l/2) e, an estimate of the KL divergence. A row of x(B,2Z)
// holds mu, then l, clamped to [-8, 8]; mu and l define the normal distribution q. The prior is
// p(z) = N(u; 0, 1) |du/dz|, where u(B,Z) is the result of the flow for z, and log |du/dz| = log_dets(B) + log_det(1):
// log_dets is the part that differs from row to row, and log_det the part that is the same for all rows. Therefore
//     kl = 1/2 sum(u^2 - e^2 - l) - log_dets - log_det
// e has no gradient. All tensors have the arithmetic type A, which is never bf16.
OP(flow_kl_forward, (View x, View e, View u, View log_dets, View log_det, View kl),
   "x(B,2Z)A e u(B,Z)A log_dets kl(B)A log_det(1)A")
OP(flow_kl_backward, (View dkl, View x, View u, Grad dx, Grad du, Grad dlog_dets, Grad dlog_det))

// A row of y(B,Z) has `groups` groups of D = Z / groups numbers; codes(groups M, D) has M rows for each group. For each
// group, q(B,Z) contains the nearest row of codes, that is, the row that is nearest to the group's numbers of y among
// the M rows of the group. code(B,groups) contains the number of this row, 0 to M-1. If several rows are equally near,
// the first one is taken. No backward. All tensors have the arithmetic type A, which is never bf16.
//                                                                                            van den Oord et al. 2017
OP(nearest_code_forward, (View y, View codes, int groups, View q, View code), "y q(B,GD)A codes(GM,D)A code(B,G)A")
// q(B,Z): t rounded to the nearest of `levels` equally spaced numbers from -1 to 1. No backward. All tensors have the
// arithmetic type A, which is never bf16.                                                         Mentzer et al. 2023
OP(nearest_level_forward, (View t, int levels, View q), "t q(*)A")
// z(B,Z) = q, but the backward treats z as a copy of y: dy = dz. All tensors have the arithmetic type A, which is never
// bf16.                                                                                              Bengio et al. 2013
OP(straight_through_forward, (View y, View q, View z), "y q z(*)A")
OP(straight_through_backward, (View dz, Grad dy))
// distance(B) = weight |y - q|^2;  q(B,Z) has no gradient. All tensors have the arithmetic type A, which is never bf16.
OP(distance_forward, (View y, View q, double weight, View distance), "y q(B,Z)A distance(B)A")
OP(distance_backward, (View ddistance, View y, View q, double weight, Grad dy))
// One moving-average step of codes(groups M, D), counts(groups M) and sums (in the shape of codes). The step uses only
// the documents with weights(B) > 0, which must come first. y(B,Z) is the input of nearest_code, and code(B,groups) its
// output. For each row r of codes, in group g, n is the number of documents whose code for group g is row r, and s is
// the sum of the numbers that these documents have in y for group g:
//     count = decay count + (1-decay) n,  sum = decay sum + (1-decay) s,  row = sum / count
// A dead row is a row with a small count (CodeRule). It becomes what a randomly drawn document has in y for group g,
// and its count becomes (used documents) / M. All tensors have the arithmetic type A, which is never bf16.
//                                                                             van den Oord et al. 2017, appendix A.1
OP(learn_codes, (View y, View code, View weights, CodeRule rule, View codes, View counts, View sums),
   "y(B,Z)A weights(B)A codes sums(K,D)A counts(K)A")

// Cross-entropy of logits = h(N,C) w(V,C)^T + b(V), which are never stored all at once;  b may be absent. For each row:
//     lse(N) = log sum exp logits,  loss(N) = lse - (1-e) logits[target] - e/V sum logits
// e in [0,1) is `smoothing`, the label smoothing. If e = 0, the loss is the negative log-probability of the target.
// total(1) is the sum over n of weight_n loss_n; weights(N) have no gradient.
//                                                                               Szegedy et al. 2016, section 7
// The forward also computes h1(N,C), w1(V,C), b1(V), the gradients of total with respect to h, w and b, because the
// logits are not kept for the backward. total, h1, w1 and b1 may each be absent; if all four are absent, weights may be
// absent, too. h, w and h1 have the storage type S; b, weights, loss, lse, total, w1 and b1 have the arithmetic type A
// (f32 if S is bf16).
OP(cross_entropy_forward,
   (View h, View w, View b, Ints targets, View weights, double smoothing, View loss, View lse, View total, View h1,
    View w1, View b1),
   "h h1?(N,C) w(V,C) b? b1?(V)A w1?(V,C)A targets(N) weights?(N)A loss lse(N)A total?(1)A")
// dh = dtotal h1, dw = dtotal w1, db = dtotal b1, with the gradients h1, w1 and b1 that the forward has computed
OP(cross_entropy_backward, (View dtotal, View h1, View w1, View b1, Grad dh, Grad dw, Grad db),
   "h1? dh(N,C) w1? dw(V,C)A b1? db(V)A dtotal(1)A")

// The logits of J chosen pairs of a slot and a token, and the log-sum-exp of all logits. A slot is a place at which an
// insertion decoder may insert a token. Each of the M slots has K vectors h_r of E numbers: row m of h(M,K E) contains
// the vectors r = m K + k of slot m, for k < K. Vector r has a logit for each of the V tokens c; the logits are never
// stored all at once:
//     logits[r,c] = h_r . w(V,E)_c + b(V)_c + bias(B,V)[groups(M)_m, c]
//     lse(M,K)_mk = log sum_c exp logits[m K + k, c]
// Pair j consists of slot slots(J)_j and token tokens(J)_j. Pair j has K logits:
// z(J,K)_jk = logits[slots_j K + k, tokens_j]. groups and slots ascend; a pair may occur more than once. b and bias may
// be absent; groups is read only if there is a bias. h and w have the storage type S; b, bias, z and lse have the
// arithmetic type A (f32 if S is bf16).                                                Stern et al. 2019, equations 2-8
OP(chosen_logits_forward, (View h, View w, View b, View bias, Ints groups, Ints slots, Ints tokens, View z, View lse),
   "w(V,E) h(M,KE) b?(V)A bias?(B,V)A slots tokens(J) z(J,K)A lse(M,K)A dw(V,E)A")
// In this backward, r = m K + k is vector k of slot m, as in the forward:
//     dlogits[r,c] = dlse_r exp(logits[r,c] - lse_r) + sum_j dz_jk
//     dh_r = dlogits_r w,   dw = sum_r dlogits_r^T h_r,   db = sum_r dlogits_r
// The sum over j runs over the pairs that consist of slot m and token c. Row g of dbias is the sum of dlogits_r over
// the vectors r of all slots m with groups_m = g. dw, db and dbias have the arithmetic type A (f32 in a bf16 model).
OP(chosen_logits_backward, (View dz, View dlse, View h, View w, View b, View bias, View lse, Ints groups, Ints slots,
                            Ints tokens, Grad dh, Grad dw, Grad db, Grad dbias))

// The W best tokens of each row of logits x(N,V), for searches that choose the next token. best(N,W) contains the W
// largest logits of a row, largest first, and ids(N,W) their columns. Equal logits are in the order of their columns,
// and NaN counts as minus infinity. The log-sum-exp of the row is best[0] + log sum_p parts[p]: number p of parts(N,P)
// is the sum of exp(x - best[0]) over the columns [1024 p, 1024 (p+1)) that the row has, so P = ceil(V / 1024). If a
// logit is NaN or infinity, or if all are minus infinity, a part is NaN. No backward. All tensors have the arithmetic
// type A, which is never bf16.
OP(shortlist, (View x, View best, View ids, View parts), "x(N,V)A best ids(N,W)A parts(N,P)A")

// The loss of an insertion decoder for each document: loss(B) = -sum_j shares(J)_j log p_j over the choices j of the
// document. A choice is a pair of a slot and a target token. Slot m has the choices [begin[m], begin[m+1]), and
// document g has the slots [first[g], first[g+1]). begin (M+1) ascends from 0 to J, and first (B+1) from 0 to M.
// shares, the weights of the choices, have no gradient. All tensors have the arithmetic type A, which is never bf16.
//     log p_j = log sum_k exp(base_k + z_jk) + place_m - log sum exp place,  base_k = log softmax(mix)_k - n_k
// z(J,K) are the logits of the choices (op chosen_logits), mix the logits of K mixture components, and place a logit
// for each slot. m is the slot of choice j. The sum of exp place runs over the slots of the document.
//     joint is false: base is (M,K), and n_k = lse(M,K)_mk. place(M) may be absent; the terms with place are then 0.
//     joint is true:  base is (B,K), and n_k = log sum_m exp lse_mk over the document's slots. place must be absent.
// mix has the shape of base, and may be absent if K is 1. inner(J) = log sum_k exp(base_k + z_jk).
//                                                                            Stern et al. 2019
OP(slot_loss_forward,
   (View z, View lse, View mix, View place, Ints first, Ints begin, View shares, bool joint, View loss, View base,
    View inner),
   "z(J,K)A lse(M,K)A mix? base(R,K)A place?(M)A shares(J)A loss(B)A inner(J)A")
OP(slot_loss_backward, (View dloss, View z, View lse, View mix, View place, Ints first, Ints begin, View shares,
                        bool joint, View base, View inner, Grad dz, Grad dlse, Grad dmix, Grad dplace))

// y(1) = sum_i weight_i x_i, summed in a fixed order. The weights have no gradient. All tensors have the arithmetic
// type A, which is never bf16.
OP(weighted_sum_forward, (View x, View weights, View y), "x weights(*)A y(1)A")
OP(weighted_sum_backward, (View dy, View weights, Grad dx))

// norm(1) = sqrt(sum g_i^2) over a whole gradient buffer g(n), summed in chunks of fixed size and in order, so that the
// sum does not depend on the number of threads. Both tensors have the arithmetic type A, which is never bf16.
OP(global_norm, (View g, View norm), "g(*)A norm(1)A")
// One AdamW step over a slice of the parameters. If rule.clip > 0, g is first scaled by min(1, clip / norm). Then
//     m = beta1 m + (1-beta1) g,  v = beta2 v + (1-beta2) g^2,  p -= rate (m c1 / (sqrt(v c2) + eps) + decay p)
// control(3) contains the learning rate, c1 = 1 / (1 - beta1^t) and c2 = 1 / (1 - beta2^t) of step t. control is a
// tensor, so that a captured CUDA graph can be replayed with other numbers. `rounded`, if present, receives p rounded
// to bf16, for the ops that read matrices in bf16.
//                                                                            Loshchilov & Hutter 2017
OP(adamw, (View p, View g, View m, View v, View norm, View control, OptimiserRule rule, View rounded),
   "p g m v(*)A norm(1)A control(3)A")
// One Apollo step of one parameter tensor. If rule.clip > 0, g is first scaled by min(1, clip / norm). Then decay p is
// added to g. Next, den and change are computed from the old m, B and d; last, B, m, d and p are updated, in this
// order.
//     den = (sum d^4)^(1/4) + eps / 0.01,  change = -(alpha sum (g - m) d + sum B d^2) / den^4
//     B += change d^2,  m += alpha (g - m),  d = m / max(|B|, 0.01),  p -= rate d
// B is the tensor b. control(2) contains the learning rate and alpha = (1-beta1) / (1 - beta1^t) of step t.
// `rounded`, if present, receives p rounded to bf16.                                                            Ma 2020
OP(apollo, (View p, View g, View m, View b, View d, View norm, View control, OptimiserRule rule, View rounded),
   "p g m b d(*)A norm(1)A control(2)A")

#endif
