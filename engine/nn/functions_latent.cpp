// SPDX-License-Identifier: MIT
// Functions on the tape for latents: samples, KL divergences, codebooks and normalising flows.
#include "engine/nn/functions.h"
#include "engine/tape/op_record.h"

namespace masquerade {

Tensor* normalise(Tape& t, Tensor* x, const std::string& name, int heads) {
    return run_op(t, name, normalise_forward, normalise_backward, {x}, heads);
}

Tensor* vmf_sample(Tape& t, Tensor* mu, Tensor* w, Tensor* e, const std::string& name) {
    return run_op(t, name, vmf_sample_forward, vmf_sample_backward, {mu, w, e});
}

Tensor* gaussian_sample(Tape& t, Tensor* x, Tensor* e, const std::string& name) {
    return run_op(t, name, gaussian_sample_forward, gaussian_sample_backward, {x, e});
}

Tensor* gaussian_kl(Tape& t, Tensor* x, Tensor* prior, const std::string& name, bool apart) {
    Tensor* kl = t.declare(name, apart ? Shape{x->rows(), x->shape[1] / 2} : Shape{x->rows()}, x->dtype);
    return t.run(Record("gaussian_kl").reads({x, prior}).makes({kl}).by(gaussian_kl_forward, gaussian_kl_backward));
}

Tensor* at_least(Tape& t, Tensor* x, double least, const std::string& name) {
    return run_op(t, name, at_least_forward, at_least_backward, {x}, least);
}

NearestCode nearest_code(Tape& t, Tensor* y, Tensor* codes, int groups, const std::string& name) {
    Tensor* q = run_op(t, name, nearest_code_forward, nullptr, {y, codes}, groups);
    return {q, t.records().back().out[1]};
}

Tensor* nearest_level(Tape& t, Tensor* x, int levels, const std::string& name) {
    return run_op(t, name, nearest_level_forward, nullptr, {x}, levels);
}

Tensor* straight_through(Tape& t, Tensor* y, Tensor* q, const std::string& name) {
    return run_op(t, name, straight_through_forward, straight_through_backward, {y, q});
}

Tensor* distance(Tape& t, Tensor* y, Tensor* q, double weight, const std::string& name) {
    return run_op(t, name, distance_forward, distance_backward, {y, q}, weight);
}

WithLogDet coupling(Tape& t, Tensor* x, Tensor* st, const std::string& name) {
    Tensor* y = run_op(t, name, coupling_forward, coupling_backward, {x, st});
    return {y, t.records().back().out[1]};
}

Tensor* log_det(Tape& t, Tensor* w, const std::string& name) {
    return run_op(t, name, log_det_forward, log_det_backward, {w});
}

WithLogDet actnorm(Tape& t, Tensor* x, Tensor* s, Tensor* b, const std::string& name) {
    Tensor* y = run_op(t, name, actnorm_forward, actnorm_backward, {x, s, b});
    return {y, t.records().back().out[1]};
}

WithLogDet lu_matrix(Tape& t, Tensor* lu, Tensor* order, const std::string& name) {
    Tensor* w = run_op(t, name, lu_matrix_forward, lu_matrix_backward, {lu, order});
    return {w, t.records().back().out[1]};
}

Tensor* flow_kl(Tape& t, Tensor* x, Tensor* e, Tensor* u, Tensor* log_dets, Tensor* log_det, const std::string& name) {
    return run_op(t, name, flow_kl_forward, flow_kl_backward, {x, e, u, log_dets, log_det});
}

}  // namespace masquerade
