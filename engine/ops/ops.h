// SPDX-License-Identifier: MIT
// The list of all ops. Each OP line below becomes three things (ops/table.h): a declaration in namespaces cpu and cuda,
// a slot of the device table, and a function `noun_forward(...)` that runs on the device of its tensors. Parameter
// names matter, because records on the tape (tape/op_record.h) and tests pass tensors by name. Outputs come after
// inputs, the main output first. A backward has a parameter View dy for each output y, and Grad dx for each input x.
//
// The contract. Outputs are fully written, inputs untouched. A Grad is stored or added (the first-writer rule) and may
// be absent. An op allocates nothing that a captured CUDA graph could not replay, reads nothing back to the host, and
// uses one stream. Shapes are checked once, on entry. S is the storage type of activations and matrices (f32, bf16,
// f64, c128); A is its arithmetic type (f32, f32, f64, c128), the type of biases, norms, statistics, losses, latents
// and their noise. Below, "x, w: S" means that x and w have type S, and "all A" that all tensors have type A. Sizes: N,
// M tokens or rows, C width, O and I output and input width, V vocabulary, B documents, Z latent size, H heads.
#ifndef OP
#include "engine/ops/table.h"
#else

// y(M,O) = x(M,I) w(O,I)^T + b(O);  b may be absent.  x, w: S;  b: A;  y, dy: S or A (unrounded)
OP(linear_forward, (View x, View w, View b, View y))
// dx(M,I) = dy w,  dw(O,I) = dy^T x,  db(O) = column sums of dy.  dw: A
OP(linear_backward, (View dy, View x, View w, Grad dx, Grad dw, Grad db))

// y(N,C) = (x - mean) rstd w + b,  rstd = 1 / sqrt(variance + eps).  w, b (C), mean, rstd (N): A.   Ba et al. 2016
OP(layernorm_forward, (View x, View w, View b, double eps, View y, View mean, View rstd))
OP(layernorm_backward, (View dy, View x, View w, View mean, View rstd, Grad dx, Grad dw, Grad db))

// y(N,C) = x inverse w,  inverse = 1 / sqrt(mean(x^2) + eps).  w (C), inverse (N): A           Zhang & Sennrich 2019
OP(rms_norm_forward, (View x, View w, double eps, View y, View inverse))
OP(rms_norm_backward, (View dy, View x, View w, View inverse, Grad dx, Grad dw))

// y = x, converted from one storage type to another.  x, y: S or A
OP(convert_forward, (View x, View y))
OP(convert_backward, (View dy, Grad dx))

// y = tanh(x)
OP(tanh_forward, (View x, View y))
OP(tanh_backward, (View dy, View y, Grad dx))

// y = x Phi(x), with the normal distribution function Phi, or its tanh approximation.   Hendrycks & Gimpel 2016
OP(gelu_forward, (View x, GeluKind kind, View y))
OP(gelu_backward, (View dy, View x, GeluKind kind, Grad dx))

// y = x / (1 + exp(-x))                                                                       Elfwing et al. 2017
OP(silu_forward, (View x, View y))
OP(silu_backward, (View dy, View x, Grad dx))

// y = max(x, 0)^2                                                                                  So et al. 2021
OP(squared_relu_forward, (View x, View y))
OP(squared_relu_backward, (View dy, View x, Grad dx))

// y(N,F) = g(a) b. A row of x(N,2F) is a, then b; g is the activation of the gate.                    Shazeer 2020
OP(glu_forward, (View x, GateKind kind, View y))
OP(glu_backward, (View dy, View x, GateKind kind, Grad dx))

// u(M,O) = x w^T + b and a(M,O) = gelu(u), computed while u is in cache;  b may be absent. The backward is
// linear_backward with the gradient of u.
OP(linear_gelu_forward, (View x, View w, View b, GeluKind kind, View u, View a))
// The backward of y(M,O) = a w^T + b with a(M,I) = gelu(u), whose forward is linear_forward:
//     du(M,I) = gelu'(u) (dy w),  dw = dy^T a,  db = column sums of dy
OP(gelu_linear_backward, (View dy, View u, View a, View w, GeluKind kind, Grad du, Grad dw, Grad db))

// y(N,C) = x(N,C) w(C), one factor per column.  x, y: S;  w: A
OP(scale_columns_forward, (View x, View w, View y))
OP(scale_columns_backward, (View dy, View x, View w, Grad dx, Grad dw))

// y = a + b
OP(add_forward, (View a, View b, View y))
OP(add_backward, (View dy, Grad da, Grad db))

// y(N,C) = x keep / (1 - rate); keep is 0 or 1, drawn from (stream, document and position of the row, channel).
//                                                                                                  Srivastava 2014
OP(dropout_forward, (View x, RowNames rows, DropoutRule rule, View y))
OP(dropout_backward, (View dy, RowNames rows, DropoutRule rule, Grad dx))

// s = x + dropout(f), y = layernorm(s): layernorm and dropout as above.  x, f, s, y (N,C): S;  w, b (C), mean, rstd
// (N): A
OP(residual_norm_forward,
   (View x, View f, RowNames rows, DropoutRule rule, View w, View b, double eps, View y, View s, View mean, View rstd))
OP(residual_norm_backward,
   (View dy, View s, RowNames rows, DropoutRule rule, View w, View mean, View rstd, Grad dx, Grad df, Grad dw, Grad db))

// y(N,C) = w(V,C)[ids(N)]
OP(embedding_forward, (Ints ids, View w, View y))
// dw(V,C): row v is the sum of the rows of dy with id v, in row order.  dw: A
OP(embedding_backward, (View dy, Ints ids, Grad dw))

// Rotates the interleaved pairs (2i, 2i+1) of every head in the first `columns` columns of x(N,C) by
// position * base^(-2i/D), and copies the other columns. Row p of rotary_table (P,D) contains the cosines
// and sines of position p: cos, sin, cos, sin ...  rotary_table: A
//                                                                            Su et al. 2021, equation 34
OP(rotary_forward, (View x, Ints positions, View rotary_table, int columns, View y))
OP(rotary_backward, (View dy, Ints positions, View rotary_table, int columns, Grad dx))
// y(M,O) = x(M,I) w(O,I)^T + b(O), rotated as above while in cache;  b may be absent.  y, dy: S
OP(linear_rotary_forward, (View x, View w, View b, Ints positions, View rotary_table, int columns, View y))
OP(linear_rotary_backward,
   (View dy, View x, View w, Ints positions, View rotary_table, int columns, Grad dx, Grad dw, Grad db))

// For each head: y_i = sum_j p_ij v_j,  p_i = softmax_j(q_i . k_j / sqrt(D)) over the keys j that the graph lets row i
// see. If row i sees no key, y_i = 0.  q, y (Nq,H D);  each kv[s] (Nk,2 G D): the keys of G key heads, then their
// values; H / G query heads share a key head.  lse (Nq,H): the log of the sum of exp; minus infinity if the row sees no
// key. lse: A.   Vaswani et al. 2017, equation 1; Ainslie et al. 2023
OP(attention_forward, (View q, Views kv, const SegmentGraph& graph, AttentionRule rule, View y, View lse))
OP(attention_backward,
   (View dy, View q, Views kv, View y, View lse, const SegmentGraph& graph, AttentionRule rule, Grad dq, Grads dkv))

// For each head: R slots absorb the keys that the graph lets row i see, and x_i reads the slots (engine/math/state.h).
// attend:     x (Nq,C): S;    each kv[s]: keys, then values (Nk,2C), or (Nk,C) if the keys are the values
// otherwise:  x (Nq,H*R): A;  each kv[s]: values (Nk,C)
// pack[s] (Nk,H*R) is multiplied by rule.scale; gate[s] (Nk,H) are logits, only for the gated pack.  kv, y (Nq,C): S;
// pack, gate: A.  before, after (B, state_numbers): A: the state of document b before and after its rows; each may be
// absent.
OP(state_attention_forward, (View x, Views pack, Views kv, Views gate, const SegmentGraph& graph, StateRule rule,
                             View before, View y, View after))
OP(state_attention_backward, (View dy, View x, Views pack, Views kv, Views gate, const SegmentGraph& graph,
                              StateRule rule, Grad dx, Grads dpack, Grads dkv, Grads dgate))

// For each head: y_i = sum_j (e_(j-i) . q_i) v_j over those keys j of the segment of row i that the graph lets row i
// see and that are at most (W-1)/2 positions away.  q (Nq,C), de: A;  e (W,C), each v[s] (Nk,C), y (Nq,C): S
OP(local_lambda_forward, (View q, View e, Views v, const SegmentGraph& graph, int heads, View y))
OP(local_lambda_backward,
   (View dy, View q, View e, Views v, const SegmentGraph& graph, int heads, Grad dq, Grad de, Grads dv))

// Attention within buckets, for each head:  y_i = sum_j p_ij v_j,  p_i = softmax_j(q_i . k_j / sqrt(D)) over the other
// rows j of its segment that, in some round, have the bucket of row i and are in the same chunk of the sorted rows as
// row i or in the chunk before. If there are none, row i sees only itself.  q, k, v (N,C), y (Nq,C): S;  lse (Nq,H),
// rotations (rounds * buckets / 2, C): A;  Nq is the number of query rows of the graph.   Kitaev et al. 2020
OP(lsh_attention_forward,
   (View q, View k, View v, View rotations, const SegmentGraph& graph, LshRule rule, View y, View lse))
OP(lsh_attention_backward, (View dy, View q, View k, View v, View rotations, View y, View lse,
                            const SegmentGraph& graph, LshRule rule, Grad dq, Grad dk, Grad dv))

// Sorted blocks, for each head. Row t of block u of a segment of y is sum_v w_uv kv[v, t], over those blocks v of the
// segment that have a row t; w_uv is S_uv, divided by its sum over these v. S starts as
// exp(q_u . k_v / sqrt(D) / temperature), with q_u and k_v the means of q (N,C) and of the keys of kv (N,2C) over
// blocks u and v; then the columns of S, then its rows, are normalised to sum 1, `iterations` times. y is (B*block,2C)
// with B = N / block + number of key segments; unused rows of y are 0.
//                                                                            Tay et al. 2020, section 3
OP(sinkhorn_forward, (View q, View kv, const SegmentGraph& graph, SinkhornRule rule, View y))
OP(sinkhorn_backward, (View dy, View q, View kv, const SegmentGraph& graph, SinkhornRule rule, Grad dq, Grad dkv))

// For each head h and r < R: y(N,H R)[n, hR+r] = scale sum_d x(N,C)[n, hD+d] p(R,C)[r, hD+d].  x, p, dx: S;  y: A;
// dp: A or S
OP(head_scores_forward, (View x, View p, int heads, double scale, View y))
OP(head_scores_backward, (View dy, View x, View p, int heads, double scale, Grad dx, Grad dp))
// y(N,H F): the features (engine/math/features.h) of the heads of x(N,C), or their logarithms, computed from the
// projections t(N,H R) of the heads. x may be absent if the features of this kind do not depend on |x|.  x: S;  t, y: A
OP(feature_map_forward, (View t, View x, int heads, double scale, FeatureKind kind, View y))
OP(feature_map_backward, (View dy, View t, View x, int heads, double scale, FeatureKind kind, Grad dt, Grad dx))

// y(M,C) = x(N,C)[rows(M)]. rows must not contain a row twice (use embedding for a lookup with repeats).
OP(gather_rows_forward, (View x, Ints rows, View y))
// dx(N,C)[rows[m]] = dy[m]; the other rows of dx are 0
OP(gather_rows_backward, (View dy, Ints rows, Grad dx))

// Row n of y(N,C) is row which[n] of u(B,C) if which[n] >= 0, else row n of x(N,C). which(N) contains every row of u
// exactly once.
OP(replace_rows_forward, (View x, Ints which, View u, View y))
OP(replace_rows_backward, (View dy, Ints which, Grad dx, Grad du))

// Row b of y(B,C) is the maximum, in each column, of the rows [first[b], first[b+1]) of x(N,C); 0 if there are none.
// first (B+1) ascends from 0 to N.
OP(max_rows_forward, (View x, Ints first, View y))
// In each column, dx is dy at the first of the rows that have the maximum, and 0 at the others.
OP(max_rows_backward, (View dy, View x, Ints first, Grad dx))

// y[rows[m]] = x(M,C)[m]; the other rows of y are unchanged. Decoding stores keys and values in its cache by this op.
// No backward.
OP(store_rows, (View x, Ints rows, View y))

// For each head of a row: y(N,C) = x inverse,  inverse(N,H) = 1 / max(|x|, 1e-6).  inverse: A
OP(normalise_forward, (View x, int heads, View y, View inverse))
OP(normalise_backward, (View dy, View y, View inverse, int heads, Grad dx))

// z(B,Z) = w mu + sqrt(1 - w^2) nu, where nu is the unit vector along e - (e.mu) mu;  w(B). e(B,Z), normal noise, has
// no gradient.  all A
//                                                                            Davidson et al. 2018, section 3
OP(vmf_sample_forward, (View mu, View w, View e, View z))
OP(vmf_sample_backward, (View dz, View mu, View w, View e, Grad dmu, Grad dw))

// A row of x(B,2Z) is mu, then the log variance l, which is clamped to [-8, 8]:  z(B,Z) = mu + exp(l / 2) e.  all A
//                                                                            Kingma & Welling 2013
OP(gaussian_sample_forward, (View x, View e, View z))
OP(gaussian_sample_backward, (View dz, View x, View e, Grad dx))
// kl(B) = 1/2 sum((mu - m)^2 exp(-p) + exp(l - p) - (l - p) - 1), l and p the clamped log variances. x(B,2Z) is mu,
// then l; prior(B,2Z) is m, then p; if prior is absent, m = p = 0. If kl is (B,Z), it receives the terms instead of
// their sum. all A
OP(gaussian_kl_forward, (View x, View prior, View kl))
OP(gaussian_kl_backward, (View dkl, View x, View prior, Grad dx, Grad dprior))
// y = max(x, least); the gradient is 0 if x <= least.  all A
OP(at_least_forward, (View x, double least, View y))
OP(at_least_backward, (View dy, View x, double least, Grad dx))

// Affine coupling, a block of a flow. A row of x(B,Z) is a, then b, the last Z/2 numbers; a row of st(B,2 (Z/2)) is r,
// then t. With s = 2 tanh(r / 2), a row of y(B,Z) is a, then b exp(s) + t, and log_det(B) is the sum of s.  all A
//                                            Dinh et al. 2016, section 3; Kingma & Dhariwal 2018, section 3
OP(coupling_forward, (View x, View st, View y, View log_det))
OP(coupling_backward, (View dy, View dlog_det, View x, View st, Grad dx, Grad dst))
// log_det(1) = log |det w|, w(Z,Z); inverse(Z,Z) is the inverse of w; left(Z,Z) is scratch memory.
// dw = dlog_det inverse^T.  all A
OP(log_det_forward, (View w, View log_det, View left, View inverse))
OP(log_det_backward, (View dlog_det, View inverse, Grad dw))
// kl(B) = log q(z) - log p(z) at z = mu + exp(l/2) e, where a row of x(B,2Z) is mu, then l, clamped as above, q is this
// normal distribution, and p(z) = N(u; 0, 1) |du/dz| with u(B,Z) the result of the flow for z:
//     kl = 1/2 sum(u^2 - e^2 - l) - log_dets(B) - log_det(1);  e has no gradient.  all A
OP(flow_kl_forward, (View x, View e, View u, View log_dets, View log_det, View kl))
OP(flow_kl_backward, (View dkl, View x, View u, Grad dx, Grad du, Grad dlog_dets, Grad dlog_det))

// y(B,Z) has `groups` groups of D = Z / groups numbers; codes(groups M, D) has M rows for each group. For each group,
// q(B,Z) contains the row nearest to the numbers of y, and code(B,groups) its number, 0 to M-1; if several rows are
// equally near, the first of them. No backward.  all A                       van den Oord et al. 2017
OP(nearest_code_forward, (View y, View codes, int groups, View q, View code))
// q(B,Z): t rounded to the nearest of `levels` equally spaced numbers from -1 to 1. No backward.  all A
//                                                                            Mentzer et al. 2023
OP(nearest_level_forward, (View t, int levels, View q))
// z(B,Z) = q, but the gradient is that of z = y:  dy = dz.  all A                 Bengio et al. 2013
OP(straight_through_forward, (View y, View q, View z))
OP(straight_through_backward, (View dz, Grad dy))
// distance(B) = weight |y - q|^2;  q(B,Z) has no gradient.  all A
OP(distance_forward, (View y, View q, double weight, View distance))
OP(distance_backward, (View ddistance, View y, View q, double weight, Grad dy))
// One moving-average step of codes(groups M, D), counts(groups M) and sums (in the shape of codes). It uses the
// documents with weights(B) > 0, which must come first. For each row of codes, n is the number and s the sum of the y
// whose nearest row it is, by code(B,groups):
//     count = decay count + (1-decay) n,  sum = decay sum + (1-decay) s,  row = sum / count
// A dead row (CodeRule) becomes a randomly drawn y, and its count becomes documents / M.  all A
//                                                                             van den Oord et al. 2017, appendix A.1
OP(learn_codes, (View y, View code, View weights, CodeRule rule, View codes, View counts, View sums))

// logits = h(N,C) w(V,C)^T + b(V), which are never stored all at once;  b may be absent.  lse(N) = log sum exp logits,
// loss(N) = lse - (1-e) logits[target] - e/V sum logits, where e in [0,1) is the label smoothing. If e = 0, the loss is
// the negative log-probability of the target. total(1) = sum_n weight_n loss_n;  weights(N) have no gradient.
//                                                                               Szegedy et al. 2016, section 7
// The same pass computes the gradients of total: h1(N,C), w1(V,C), b1(V). Each of them may be absent; if all are
// absent, weights and total may be absent too.  h, w, h1: S;  b, weights, loss, lse, total, w1, b1: A
OP(cross_entropy_forward, (View h, View w, View b, Ints targets, View weights, double smoothing, View loss, View lse,
                           View total, View h1, View w1, View b1))
// dh = dtotal h1, dw = dtotal w1, db = dtotal b1
OP(cross_entropy_backward, (View dtotal, View h1, View w1, View b1, Grad dh, Grad dw, Grad db))

// Slot m has K rows of h(M,K E): row r = m K + k. logits[r,c] = h_r . w(V,E)_c + b(V)_c + bias(G,V)[groups(M)_m, c],
// which are never stored all at once.  z(J,K) = logits[slots(J) K + k, tokens(J)],  lse(M,K) = log sum_c exp logits.
// groups and slots ascend; a (slot, token) pair may occur more than once. b and bias may be absent; groups is read only
// if there is a bias.  h, w: S;  b, bias, z, lse: A
//                                                                                     Stern et al. 2019, equations 2-8
OP(chosen_logits_forward, (View h, View w, View b, View bias, Ints groups, Ints slots, Ints tokens, View z, View lse))
// dlogits[r,c] = dlse_r exp(logits[r,c] - lse_r) + the sum of the dz_jk of row r and token c.  dw, db, dbias: A
OP(chosen_logits_backward, (View dz, View dlse, View h, View w, View b, View bias, View lse, Ints groups, Ints slots,
                            Ints tokens, Grad dh, Grad dw, Grad db, Grad dbias))

// loss(B) = -sum of share_j log p_j over the choices j of the slots of a document. Document g has the slots [first[g],
// first[g+1]), first (B+1) from 0 to M; slot m has the choices [begin[m], begin[m+1]), begin (M+1) from 0 to J;
// shares(J) have no gradient.  all A
//     log p_j = log sum_k exp(base_k + z_jk) + place_m - log sum exp place,  base_k = log softmax(mix)_k - n_k
// m is the slot of choice j; sums over m run over the slots of the document. If not joint, base is (M,K) and
// n_k = lse(M,K)_mk. If joint, base is (B,K), n_k = log sum_m exp lse_mk, and there is no place. mix has the shape of
// base, and may be absent if K is 1; place(M) may always be absent. z(J,K);  inner(J) = log sum_k exp(base_k + z_jk).
// Stern et al. 2019
OP(slot_loss_forward, (View z, View lse, View mix, View place, Ints first, Ints begin, View shares, bool joint,
                       View loss, View base, View inner))
OP(slot_loss_backward, (View dloss, View z, View lse, View mix, View place, Ints first, Ints begin, View shares,
                        bool joint, View base, View inner, Grad dz, Grad dlse, Grad dmix, Grad dplace))

// y(1) = sum_i weight_i x_i, summed in a fixed order;  weights have no gradient.  all A
OP(weighted_sum_forward, (View x, View weights, View y))
OP(weighted_sum_backward, (View dy, View weights, Grad dx))

// norm(1) = sqrt(sum g_i^2) over a whole gradient buffer g(n), in chunks of fixed size.  all A
OP(global_norm, (View g, View norm))
// One AdamW step over a slice: g is first scaled by min(1, clip / norm), then
//     m = beta1 m + (1-beta1) g,  v = beta2 v + (1-beta2) g^2,  p -= rate (m c1 / (sqrt(v c2) + eps) + decay p)
// control(3) = rate, c1 = 1 / (1 - beta1^t), c2 = 1 / (1 - beta2^t), in device memory.   Loshchilov & Hutter 2017
// `rounded`, if present, receives p rounded to bf16, for the ops that read matrices in bf16.
OP(adamw, (View p, View g, View m, View v, View norm, View control, OptimiserRule rule, View rounded))
// One Apollo step of one parameter tensor. g is scaled as above, then decay p is added.
//     den = (sum d^4)^(1/4) + eps / 0.01
//     B += change d^2,  m += alpha (g - m),  d = m / max(|B|, 0.01),  p -= rate d
//     change = -(alpha sum (g - m) d + sum B d^2) / den^4, from the old m, B and d
// control(2) = rate, alpha = (1-beta) / (1 - beta^t), in device memory.   Ma 2020
OP(apollo, (View p, View g, View m, View b, View d, View norm, View control, OptimiserRule rule, View rounded))

#endif
