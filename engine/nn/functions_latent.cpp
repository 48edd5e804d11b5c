// SPDX-License-Identifier: MIT
// Functions on the tape for latents: samples, KL divergences, codebooks and normalising flows.
#include "engine/nn/functions.h"
#include "engine/tape/op_record.h"

namespace masquerade {

Tensor* normalise(Tape& t, Tensor* x, const std::string& name, int heads) {
    Tensor *y = t.declare(name, x->shape, x->dtype),
           *inverse = t.declare(name + ".inverse", {x->rows(), heads}, arithmetic_of(x->dtype));
    return t.run(Record("normalise").reads({x}).makes({y, inverse}).by(normalise_forward, normalise_backward, heads));
}

Tensor* vmf_sample(Tape& t, Tensor* mu, Tensor* w, Tensor* e, const std::string& name) {
    Tensor* z = t.declare(name, mu->shape, mu->dtype);
    return t.run(Record("vmf_sample").reads({mu, w, e}).makes({z}).by(vmf_sample_forward, vmf_sample_backward));
}

Tensor* gaussian_sample(Tape& t, Tensor* x, Tensor* e, const std::string& name) {
    Tensor* z = t.declare(name, e->shape, x->dtype);
    return t.run(
        Record("gaussian_sample").reads({x, e}).makes({z}).by(gaussian_sample_forward, gaussian_sample_backward));
}

Tensor* gaussian_kl(Tape& t, Tensor* x, Tensor* prior, const std::string& name, bool apart) {
    Tensor* kl = t.declare(name, apart ? Shape{x->rows(), x->shape[1] / 2} : Shape{x->rows()}, x->dtype);
    return t.run(Record("gaussian_kl").reads({x, prior}).makes({kl}).by(gaussian_kl_forward, gaussian_kl_backward));
}

Tensor* at_least(Tape& t, Tensor* x, double least, const std::string& name) {
    Tensor* y = t.declare(name, x->shape, x->dtype);
    return t.run(Record("at_least").reads({x}).makes({y}).by(at_least_forward, at_least_backward, least));
}

NearestCode nearest_code(Tape& t, Tensor* y, Tensor* codes, int groups, const std::string& name) {
    Tensor *q = t.declare(name, y->shape, y->dtype), *code = t.declare(name + ".code", {y->rows(), groups}, y->dtype);
    t.run(Record("nearest_code").reads({y, codes}).makes({q, code}).by(nearest_code_forward, nullptr, groups));
    return {q, code};
}

Tensor* nearest_level(Tape& t, Tensor* x, int levels, const std::string& name) {
    Tensor* q = t.declare(name, x->shape, x->dtype);
    return t.run(Record("nearest_level").reads({x}).makes({q}).by(nearest_level_forward, nullptr, levels));
}

Tensor* straight_through(Tape& t, Tensor* y, Tensor* q, const std::string& name) {
    Tensor* z = t.declare(name, y->shape, y->dtype);
    return t.run(
        Record("straight_through").reads({y, q}).makes({z}).by(straight_through_forward, straight_through_backward));
}

Tensor* distance(Tape& t, Tensor* y, Tensor* q, double weight, const std::string& name) {
    Tensor* d = t.declare(name, {y->rows()}, y->dtype);
    return t.run(Record("distance").reads({y, q}).makes({d}).by(distance_forward, distance_backward, weight));
}

Coupled coupling(Tape& t, Tensor* x, Tensor* st, const std::string& name) {
    Tensor *y = t.declare(name, x->shape, x->dtype), *log_det = t.declare(name + ".log_det", {x->rows()}, x->dtype);
    t.run(Record("coupling").reads({x, st}).makes({y, log_det}, 2).by(coupling_forward, coupling_backward));
    return {y, log_det};
}

Tensor* log_det(Tape& t, Tensor* w, const std::string& name) {
    Tensor *y = t.declare(name, {1}, w->dtype), *left = t.declare(name + ".left", w->shape, w->dtype),
           *inverse = t.declare(name + ".inverse", w->shape, w->dtype);
    return t.run(Record("log_det").reads({w}).makes({y, left, inverse}).by(log_det_forward, log_det_backward));
}

Tensor* flow_kl(Tape& t, Tensor* x, Tensor* e, Tensor* u, Tensor* log_dets, Tensor* log_det, const std::string& name) {
    Tensor* kl = t.declare(name, {u->rows()}, u->dtype);
    return t.run(
        Record("flow_kl").reads({x, e, u, log_dets, log_det}).makes({kl}).by(flow_kl_forward, flow_kl_backward));
}

}  // namespace masquerade
