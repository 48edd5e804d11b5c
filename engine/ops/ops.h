// SPDX-License-Identifier: MIT
// Every op of the engine, once. Each line below becomes three things (ops/table.h): a declaration in namespace cpu (and
// cuda), a slot of the device table, and a call `noun_forward(...)` that runs on the device of its tensors. Parameter
// names matter: a record on the tape passes its tensors by name (tape/op_record.h), and a test its operands. Outputs
// come after inputs, the main output first; a backward takes dy of an output y, and Grad dx of an input x.
//
// The contract. Outputs are fully written, inputs untouched. A Grad is stored or added (the first-writer rule) and may
// be absent. An op allocates nothing that a captured CUDA graph could not replay, reads nothing back to the host, and
// uses one stream. Shapes are checked once, on entry. S is the storage type of activations and matrices (f32, bf16,
// f64, c128); A its arithmetic type (f32, f32, f64, c128), in which biases, norms, statistics, losses, latents and
// their noise are kept. Sizes: N, M tokens or rows, C width, O and I output and input width, V vocabulary, B documents,
// Z latent size, H heads.
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

// y = x Phi(x), the normal distribution function by erf, or its tanh approximation.   Hendrycks & Gimpel 2016
OP(gelu_forward, (View x, GeluKind kind, View y))
OP(gelu_backward, (View dy, View x, GeluKind kind, Grad dx))

// y = x / (1 + exp(-x))                                                                       Elfwing et al. 2017
OP(silu_forward, (View x, View y))
OP(silu_backward, (View dy, View x, Grad dx))

// y = max(x, 0)^2                                                                                  So et al. 2021
OP(squared_relu_forward, (View x, View y))
OP(squared_relu_backward, (View dy, View x, Grad dx))

// y(N,F) = g(a) b,  x(N,2F) = a | b,  g the activation of the gate                                    Shazeer 2020
OP(glu_forward, (View x, GateKind kind, View y))
OP(glu_backward, (View dy, View x, GateKind kind, Grad dx))

// u(M,O) = x w^T + b and a(M,O) = gelu(u), computed while u is in cache;  b may be absent; the backward of u is
// linear_backward
OP(linear_gelu_forward, (View x, View w, View b, GeluKind kind, View u, View a))
// The backward of y(M,O) = a w^T + b, a(M,I) = gelu(u), whose forward is linear_forward:  du(M,I) = gelu'(u) (dy w),
// dw = dy^T a,  db = column sums of dy
OP(gelu_linear_backward, (View dy, View u, View a, View w, GeluKind kind, Grad du, Grad dw, Grad db))

// y(N,C) = x(N,C) w(C), one factor per column.  x, y: S;  w: A
OP(scale_columns_forward, (View x, View w, View y))
OP(scale_columns_backward, (View dy, View x, View w, Grad dx, Grad dw))

// y = a + b
OP(add_forward, (View a, View b, View y))
OP(add_backward, (View dy, Grad da, Grad db))

// y(N,C) = x keep / (1 - rate), keep drawn from (stream, document and position of the row, channel).   Srivastava 2014
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
// dw(V,C) = sums of the rows of dy with the same id, in row order.  dw: A
OP(embedding_backward, (View dy, Ints ids, Grad dw))

// Rotates the interleaved pairs (2i, 2i+1) of every head in the first `columns` columns of x(N,C) by
// position * base^(-2i/D), and copies the other columns. rotary_table (P,D), A: row p holds the cosines
// and sines of position p, cos, sin, cos, sin ...
//                                                                            Su et al. 2021, equation 34
OP(rotary_forward, (View x, Ints positions, View rotary_table, int columns, View y))
OP(rotary_backward, (View dy, Ints positions, View rotary_table, int columns, Grad dx))
// y(M,O) = x(M,I) w(O,I)^T + b(O), rotated as above while in cache;  b may be absent, y and dy are S
OP(linear_rotary_forward, (View x, View w, View b, Ints positions, View rotary_table, int columns, View y))
OP(linear_rotary_backward,
   (View dy, View x, View w, Ints positions, View rotary_table, int columns, Grad dx, Grad dw, Grad db))

// For each head: y_i = sum_j p_ij v_j,  p_i = softmax_j(q_i . k_j / sqrt(D)) over the keys that the graph lets i see; a
// row that sees nothing gives 0.  q, y (Nq,H D);  every kv[s] (Nk,2 G D): the keys of G heads, then their values, each
// of which H / G heads of q read;  lse (Nq,H), A: log of the sum of exp, minus infinity where nothing is seen.
// Vaswani et al. 2017, equation 1; Ainslie et al. 2023
OP(attention_forward, (View q, Views kv, const SegmentGraph& graph, AttentionRule rule, View y, View lse))
OP(attention_backward,
   (View dy, View q, Views kv, View y, View lse, const SegmentGraph& graph, AttentionRule rule, Grad dq, Grads dkv))

// For each head: R slots absorb the keys that the graph lets row i see, and x_i reads the slots (engine/math/state.h).
// attend:     x (Nq,C) S;    every kv[s] S: keys, then values (Nk,2C), or (Nk,C) if the keys are the values
// otherwise:  x (Nq,H*R) A;  every kv[s] (Nk,C) S: values
// pack[s] (Nk,H*R) A, times rule.scale;  y (Nq,C) S.  gate[s] (Nk,H), A: logits, only for the gated pack.
// before, after (B, state_numbers), A: the state of document b before and after its rows; each may be absent.
OP(state_attention_forward, (View x, Views pack, Views kv, Views gate, const SegmentGraph& graph, StateRule rule,
                             View before, View y, View after))
OP(state_attention_backward, (View dy, View x, Views pack, Views kv, Views gate, const SegmentGraph& graph,
                              StateRule rule, Grad dx, Grads dpack, Grads dkv, Grads dgate))

// For each head: y_i = sum_j (e_(j-i) . q_i) v_j over the keys j of the segment of row i that are at most (W-1)/2
// places away and that the graph lets row i see.  q (Nq,C): A;  e (W,C), every v[s] (Nk,C), y (Nq,C): S;  de: A
OP(local_lambda_forward, (View q, View e, Views v, const SegmentGraph& graph, int heads, View y))
OP(local_lambda_backward,
   (View dy, View q, View e, Views v, const SegmentGraph& graph, int heads, Grad dq, Grad de, Grads dv))

// Attention by buckets, for each head:  y_i = sum_j p_ij v_j,  p_i = softmax_j(q_i . k_j / sqrt(D)) over the rows j
// that in some round share the bucket of row i and lie in its chunk of the sorted rows or in the previous chunk; if
// there are none, over i itself.  q, k, v (N,C);  y (Nq,C) and lse (Nq,H), A, of the rows that the graph asks for;
// rotations (rounds * buckets / 2, C), A.   Kitaev et al. 2020
OP(lsh_attention_forward,
   (View q, View k, View v, View rotations, const SegmentGraph& graph, LshRule rule, View y, View lse))
OP(lsh_attention_backward, (View dy, View q, View k, View v, View rotations, View y, View lse,
                            const SegmentGraph& graph, LshRule rule, Grad dq, Grad dk, Grad dv))

// y (B*block,2C): sorted blocks. Row t of block u of a segment is sum_v w_uv kv[v, t] over the blocks v of the segment
// that have a row t; w_uv is S_uv over the sum of S_uv of these blocks. S = exp(q_u . k_v / sqrt(D) / temperature) of
// the means of q (N,C) and of the keys of kv (N,2C) over blocks; then its columns and its rows are normalised to sum 1,
// in this order, `iterations` times. B = N / block + key segments; unused rows of y are 0.
//                                                                            Tay et al. 2020, section 3
OP(sinkhorn_forward, (View q, View kv, const SegmentGraph& graph, SinkhornRule rule, View y))
OP(sinkhorn_backward, (View dy, View q, View kv, const SegmentGraph& graph, SinkhornRule rule, Grad dq, Grad dkv))

// For each head and r < R: y(N,H R) = scale sum_d x(N,C)[n, hD+d] p(R,C)[r, hD+d].  x, p, dx: S;  y: A;  dp: A or S
OP(head_scores_forward, (View x, View p, int heads, double scale, View y))
OP(head_scores_backward, (View dy, View x, View p, int heads, double scale, Grad dx, Grad dp))
// y(N,H F): the features of the heads of x(N,C), S, or their logarithms, from the projections t(N,H R), A, of the heads
// (engine/math/features.h). x may be absent if the kind has no norm.
OP(feature_map_forward, (View t, View x, int heads, double scale, FeatureKind kind, View y))
OP(feature_map_backward, (View dy, View t, View x, int heads, double scale, FeatureKind kind, Grad dt, Grad dx))

// y(M,C) = x(N,C)[rows(M)]; no row twice (a lookup with repeats is an embedding)
OP(gather_rows_forward, (View x, Ints rows, View y))
// dx(N,C) = dy at its rows, 0 elsewhere
OP(gather_rows_backward, (View dy, Ints rows, Grad dx))

// y(N,C) = u(B,C)[which[n]] where which(N) >= 0, else x(N,C); every row of u is named exactly once
OP(replace_rows_forward, (View x, Ints which, View u, View y))
OP(replace_rows_backward, (View dy, Ints which, Grad dx, Grad du))

// y(B,C) = max over the rows [first[b], first[b+1]) of x(N,C), per channel; 0 if there are none.  first (B+1): 0 ... N
OP(max_rows_forward, (View x, Ints first, View y))
// dx = dy at the lowest row that has the maximum, 0 elsewhere
OP(max_rows_backward, (View dy, View x, Ints first, Grad dx))

// y[rows[m]] = x(M,C)[m], the other rows of y are unchanged; decoding stores keys and values in its cache. No backward.
OP(store_rows, (View x, Ints rows, View y))

// y(N,C) = x / max(|x|, 1e-6) for each head of a row, inverse(N,H), A: 1 / max(|x|, 1e-6)
OP(normalise_forward, (View x, int heads, View y, View inverse))
OP(normalise_backward, (View dy, View y, View inverse, int heads, Grad dx))

// z(B,Z) = w mu + sqrt(1 - w^2) nu, nu the unit vector along e - (e.mu) mu; w(B), e(B,Z) a constant, normal.  all A
//                                                                            Davidson et al. 2018, section 3
OP(vmf_sample_forward, (View mu, View w, View e, View z))
OP(vmf_sample_backward, (View dz, View mu, View w, View e, Grad dmu, Grad dw))

// x(B,2Z) = mu | log variance, the latter clamped to [-8, 8]:  z(B,Z) = mu + exp(log variance / 2) e.  all A
//                                                                            Kingma & Welling 2013
OP(gaussian_sample_forward, (View x, View e, View z))
OP(gaussian_sample_backward, (View dz, View x, View e, Grad dx))
// kl(B) = 1/2 sum((mu - m)^2 exp(-p) + exp(l - p) - (l - p) - 1), l and p the clamped log variances;
// prior(B,2Z) = m | p; if absent, m = p = 0. If kl is (B,Z), it holds the terms instead of their sum.  all A
OP(gaussian_kl_forward, (View x, View prior, View kl))
OP(gaussian_kl_backward, (View dkl, View x, View prior, Grad dx, Grad dprior))
// y = max(x, least); the gradient is 0 where x <= least.  all A
OP(at_least_forward, (View x, double least, View y))
OP(at_least_backward, (View dy, View x, double least, Grad dx))

// The blocks of a flow.  x(B,Z) = a | b, b the last Z/2 numbers, st(B,2 (Z/2)) = r | t:
//     y(B,Z) = a | b exp(s) + t,  s = 2 tanh(r / 2), log_det(B) = sum of s.  all A
//                                            Dinh et al. 2016, section 3; Kingma & Dhariwal 2018, section 3
OP(coupling_forward, (View x, View st, View y, View log_det))
OP(coupling_backward, (View dy, View dlog_det, View x, View st, Grad dx, Grad dst))
// log_det(1) = log |det w|, w(Z,Z), and inverse(Z,Z) of w; left(Z,Z) is scratch.  dw = dlog_det inverse^T.  all A
OP(log_det_forward, (View w, View log_det, View left, View inverse))
OP(log_det_backward, (View dlog_det, View inverse, Grad dw))
// kl(B) = log q - log p at z = mu + exp(l/2) e, x(B,2Z) = mu | l clamped as above, u(B,Z) = the flow of z,
// p = N(u; 0, 1) |du/dz|:
//     1/2 sum(u^2 - e^2 - l) - log_dets(B) - log_det(1); e a constant.  all A
OP(flow_kl_forward, (View x, View e, View u, View log_dets, View log_det, View kl))
OP(flow_kl_backward, (View dkl, View x, View u, Grad dx, Grad du, Grad dlog_dets, Grad dlog_det))

// For each of the groups of D = Z / groups numbers of y(B,Z): the nearest row of the group's part of codes(groups M,
// D), the lowest if several are equally near. code(B,groups) is its number in the part, q(B,Z) the row. No backward.
// all A                                                                      van den Oord et al. 2017
OP(nearest_code_forward, (View y, View codes, int groups, View q, View code))
// q(B,Z): t rounded to the nearest of `levels` equally spaced numbers from -1 to 1. No backward.  all A
//                                                                            Mentzer et al. 2023
OP(nearest_level_forward, (View t, int levels, View q))
// z(B,Z) = q;  dy = dz, as if z were y.  all A                                    Bengio et al. 2013
OP(straight_through_forward, (View y, View q, View z))
OP(straight_through_backward, (View dz, Grad dy))
// distance(B) = weight |y - q|^2, q(B,Z) a constant.  all A
OP(distance_forward, (View y, View q, double weight, View distance))
OP(distance_backward, (View ddistance, View y, View q, double weight, Grad dy))
// One moving-average step of codes(groups M, D), counts(groups M) and sums (shaped like codes) over the documents with
// weights(B) > 0, which come first:  count = decay count + (1-decay) n,  sum = decay sum + (1-decay) s,
// row = sum / count,  n and s the number and the sum of the y whose nearest row this is, by code(B,groups). A dead row
// (CodeRule) becomes a randomly drawn y, with a count of documents / M.  all A
//                                                                             van den Oord et al. 2017, appendix A.1
OP(learn_codes, (View y, View code, View weights, CodeRule rule, View codes, View counts, View sums))

// logits = h(N,C) w(V,C)^T + b(V) are never stored whole. lse(N) = log sum exp logits,
// loss(N) = lse - (1-e) logits[target] - e/V sum logits, e in [0,1) the label smoothing. This is the training loss; if
// e = 0, it is the negative log-probability of the target. total(1) = sum_n weight_n loss_n; weights(N) are constants,
// b may be absent.                                                              Szegedy et al. 2016, section 7
// The same pass leaves h1(N,C), w1(V,C), b1(V) = d total / d h, w, b. Each may be absent if it is not needed; if only
// losses are needed, weights and total may be absent too.  h, w, h1: S;  b, weights, loss, lse, total, w1, b1: A
OP(cross_entropy_forward, (View h, View w, View b, Ints targets, View weights, double smoothing, View loss, View lse,
                           View total, View h1, View w1, View b1))
// dh = dtotal h1, dw = dtotal w1, db = dtotal b1
OP(cross_entropy_backward, (View dtotal, View h1, View w1, View b1, Grad dh, Grad dw, Grad db))

// Slot m has K rows of h(M,K E), row r = m K + k; logits[r,c] = h_r . w(V,E)_c + b(V)_c + bias(G,V)[groups(M)_m, c] are
// never stored whole:  z(J,K) = logits[slots(J) K + k, tokens(J)],  lse(M,K) = log sum_c exp logits. groups and slots
// ascend; a (slot, token) pair may occur more than once. b and bias may be absent; groups is read only with bias.
// h, w: S;  b, bias, z, lse: A
//                                                                                     Stern et al. 2019, equations 2-8
OP(chosen_logits_forward, (View h, View w, View b, View bias, Ints groups, Ints slots, Ints tokens, View z, View lse))
// dlogits[r,c] = dlse_r exp(logits - lse_r) + the sum of dz_jk of that row and token.  dw, db, dbias: A
OP(chosen_logits_backward, (View dz, View dlse, View h, View w, View b, View bias, View lse, Ints groups, Ints slots,
                            Ints tokens, Grad dh, Grad dw, Grad db, Grad dbias))

// loss(B) = -sum of share_j log p_j over the choices j of the slots of a document. Document g has the slots [first[g],
// first[g+1]), first (B+1) from 0 to M; slot m has the choices [begin[m], begin[m+1]), begin (M+1) from 0 to J;
// shares(J) are constants.  all A
//     log p_j = log sum_k exp(base_k + z_jk) + place_m - log sum exp place,  base_k = log softmax(mix)_k - n_k
// base (M,K), n_k = lse(M,K)_mk;  if joint: base (B,K), n_k = log sum_m exp lse_mk, no place. mix, shaped like base,
// may be absent if K is 1; place(M) may always be absent. z(J,K);  inner(J) = the log over k. Sums over m run over the
// slots of the document.   Stern et al. 2019
OP(slot_loss_forward, (View z, View lse, View mix, View place, Ints first, Ints begin, View shares, bool joint,
                       View loss, View base, View inner))
OP(slot_loss_backward, (View dloss, View z, View lse, View mix, View place, Ints first, Ints begin, View shares,
                        bool joint, View base, View inner, Grad dz, Grad dlse, Grad dmix, Grad dplace))

// y(1) = sum_i weight_i x_i, in a fixed order.  all A;  weights are constants
OP(weighted_sum_forward, (View x, View weights, View y))
OP(weighted_sum_backward, (View dy, View weights, Grad dx))

// norm(1) = sqrt(sum g_i^2) over a whole gradient buffer g(n), in chunks of fixed size.  all A
OP(global_norm, (View g, View norm))
// One AdamW step over a slice: g is first scaled by min(1, clip / norm), then
//     m = b1 m + (1-b1) g,  v = b2 v + (1-b2) g^2,  p -= rate (m c1 / (sqrt(v c2) + eps) + decay p)
// control(3) = rate, c1 = 1 / (1 - b1^t), c2 = 1 / (1 - b2^t), in device memory.   Loshchilov & Hutter 2017
// `rounded`, if it has data, becomes p in bf16, for the ops that read p in bf16.
OP(adamw, (View p, View g, View m, View v, View norm, View control, OptimiserRule rule, View rounded))
// One Apollo step of one parameter tensor: g is scaled as above, plus decay p;  den = (sum d^4)^(1/4) + eps / 0.01,
//     B += change d^2,  m += alpha (g - m),  d = m / max(|B|, 0.01),  p -= rate d
//     change = -(alpha sum (g - m) d + sum B d^2) / den^4, from the old m, B and d
// control(2) = rate, alpha = (1-beta) / (1 - beta^t), in device memory.   Ma 2020
OP(apollo, (View p, View g, View m, View b, View d, View norm, View control, OptimiserRule rule, View rounded))

#endif
