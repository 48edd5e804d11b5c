// SPDX-License-Identifier: MIT
// Latents.
#include "engine/nn/functions.h"

namespace masquerade {

// The records' functions: named, so that a debugger shows and breaks on them.
namespace record {

void normalise_forward(const Record& r) { masquerade::normalise_forward(r.x(), r.as<int>(), r.y(0), r.y(1)); }
void normalise_backward(const Record& r) {
    masquerade::normalise_backward(r.dy(), r.y(0), r.y(1), r.as<int>(), r.dx());
}

void vmf_sample_forward(const Record& r) { masquerade::vmf_sample_forward(r.x(0), r.x(1), r.x(2), r.y()); }
void vmf_sample_backward(const Record& r) {
    const Grad dmu = r.dx(0), dw = r.dx(1);
    masquerade::vmf_sample_backward(r.dy(), r.x(0), r.x(1), r.x(2), dmu, dw);
}

void gaussian_sample_forward(const Record& r) { masquerade::gaussian_sample_forward(r.x(0), r.x(1), r.y()); }
void gaussian_sample_backward(const Record& r) {
    masquerade::gaussian_sample_backward(r.dy(), r.x(0), r.x(1), r.dx(0));
}
void gaussian_kl_forward(const Record& r) { masquerade::gaussian_kl_forward(r.x(0), r.x(1), r.y()); }
void gaussian_kl_backward(const Record& r) {
    const Grad dx = r.dx(0), dprior = r.dx(1);
    masquerade::gaussian_kl_backward(r.dy(), r.x(0), r.x(1), dx, dprior);
}

void at_least_forward(const Record& r) { masquerade::at_least_forward(r.x(), r.as<double>(), r.y()); }
void at_least_backward(const Record& r) { masquerade::at_least_backward(r.dy(), r.x(), r.as<double>(), r.dx()); }

void nearest_code_forward(const Record& r) {
    masquerade::nearest_code_forward(r.x(0), r.x(1), r.as<int>(), r.y(1), r.y(0));
}
void nearest_level_forward(const Record& r) { masquerade::nearest_level_forward(r.x(), r.as<int>(), r.y()); }
void straight_through_forward(const Record& r) { masquerade::straight_through_forward(r.x(0), r.x(1), r.y()); }
void straight_through_backward(const Record& r) { masquerade::straight_through_backward(r.dy(), r.dx(0)); }
void distance_forward(const Record& r) { masquerade::distance_forward(r.x(0), r.x(1), r.as<double>(), r.y()); }
void distance_backward(const Record& r) {
    masquerade::distance_backward(r.dy(), r.x(0), r.x(1), r.as<double>(), r.dx(0));
}

void coupling_forward(const Record& r) { masquerade::coupling_forward(r.x(0), r.x(1), r.y(0), r.y(1)); }
void coupling_backward(const Record& r) {
    const Grad dx = r.dx(0), dst = r.dx(1);
    masquerade::coupling_backward(r.dy(0), r.dy(1), r.x(0), r.x(1), dx, dst);
}
void log_det_forward(const Record& r) { masquerade::log_det_forward(r.x(), r.y(1), r.y(2), r.y(0)); }
void log_det_backward(const Record& r) { masquerade::log_det_backward(r.dy(), r.y(2), r.dx()); }
void flow_kl_forward(const Record& r) { masquerade::flow_kl_forward(r.x(0), r.x(1), r.x(2), r.x(3), r.x(4), r.y()); }
void flow_kl_backward(const Record& r) {
    const Grad dx = r.dx(0), du = r.dx(2), dlog_dets = r.dx(3), dlog_det = r.dx(4);
    masquerade::flow_kl_backward(r.dy(), r.x(0), r.x(2), dx, du, dlog_dets, dlog_det);
}

}  // namespace record

Tensor* normalise(Tape& t, Tensor* x, const std::string& name, int heads) {
    Tensor *y = t.declare(name, x->shape, x->dtype),
           *inverse = t.declare(name + ".inverse", {x->rows(), heads}, arithmetic_of(x->dtype));
    return t.run(Record("normalise")
                     .reads({x})
                     .makes({y, inverse})
                     .keeps({y, inverse})
                     .by(record::normalise_forward, record::normalise_backward, heads));
}

Tensor* vmf_sample(Tape& t, Tensor* mu, Tensor* w, Tensor* e, const std::string& name) {
    return t.run(Record("vmf_sample")
                     .reads({mu, w, e})
                     .makes({t.declare(name, mu->shape, mu->dtype)})
                     .keeps({mu, w, e})
                     .by(record::vmf_sample_forward, record::vmf_sample_backward));
}

Tensor* gaussian_sample(Tape& t, Tensor* x, Tensor* e, const std::string& name) {
    return t.run(Record("gaussian_sample")
                     .reads({x, e})
                     .makes({t.declare(name, e->shape, x->dtype)})
                     .keeps({x, e})
                     .by(record::gaussian_sample_forward, record::gaussian_sample_backward));
}

Tensor* gaussian_kl(Tape& t, Tensor* x, Tensor* prior, const std::string& name, bool apart) {
    const Shape shape = apart ? Shape{x->rows(), x->shape[1] / 2} : Shape{x->rows()};
    return t.run(Record("gaussian_kl")
                     .reads({x, prior})
                     .makes({t.declare(name, shape, x->dtype)})
                     .keeps({x, prior})
                     .by(record::gaussian_kl_forward, record::gaussian_kl_backward));
}

Tensor* at_least(Tape& t, Tensor* x, double least, const std::string& name) {
    return t.run(Record("at_least")
                     .reads({x})
                     .makes({t.declare(name, x->shape, x->dtype)})
                     .keeps({x})
                     .by(record::at_least_forward, record::at_least_backward, least));
}

NearestCode nearest_code(Tape& t, Tensor* y, Tensor* codes, int groups, const std::string& name) {
    Tensor *q = t.declare(name, y->shape, y->dtype), *code = t.declare(name + ".code", {y->rows(), groups}, y->dtype);
    t.run(Record("nearest_code").reads({y, codes}).makes({q, code}).by(record::nearest_code_forward, nullptr, groups));
    return {q, code};
}

Tensor* nearest_level(Tape& t, Tensor* x, int levels, const std::string& name) {
    return t.run(Record("nearest_level")
                     .reads({x})
                     .makes({t.declare(name, x->shape, x->dtype)})
                     .by(record::nearest_level_forward, nullptr, levels));
}

Tensor* straight_through(Tape& t, Tensor* y, Tensor* q, const std::string& name) {
    return t.run(Record("straight_through")
                     .reads({y, q})
                     .makes({t.declare(name, y->shape, y->dtype)})
                     .by(record::straight_through_forward, record::straight_through_backward));
}

Tensor* distance(Tape& t, Tensor* y, Tensor* q, double weight, const std::string& name) {
    return t.run(Record("distance")
                     .reads({y, q})
                     .makes({t.declare(name, {y->rows()}, y->dtype)})
                     .keeps({y, q})
                     .by(record::distance_forward, record::distance_backward, weight));
}

Coupled coupling(Tape& t, Tensor* x, Tensor* st, const std::string& name) {
    Tensor *y = t.declare(name, x->shape, x->dtype), *log_det = t.declare(name + ".log_det", {x->rows()}, x->dtype);
    t.run(Record("coupling")
              .reads({x, st})
              .makes({y, log_det}, 2)
              .keeps({x, st})
              .by(record::coupling_forward, record::coupling_backward));
    return {y, log_det};
}

Tensor* log_det(Tape& t, Tensor* w, const std::string& name) {
    Tensor *y = t.declare(name, {1}, w->dtype), *left = t.declare(name + ".left", w->shape, w->dtype),
           *inverse = t.declare(name + ".inverse", w->shape, w->dtype);
    return t.run(Record("log_det")
                     .reads({w})
                     .makes({y, left, inverse})
                     .keeps({inverse})
                     .by(record::log_det_forward, record::log_det_backward));
}

Tensor* flow_kl(Tape& t, Tensor* x, Tensor* e, Tensor* u, Tensor* log_dets, Tensor* log_det, const std::string& name) {
    return t.run(Record("flow_kl")
                     .reads({x, e, u, log_dets, log_det})
                     .makes({t.declare(name, {u->rows()}, u->dtype)})
                     .keeps({x, u})
                     .by(record::flow_kl_forward, record::flow_kl_backward));
}

}  // namespace masquerade
