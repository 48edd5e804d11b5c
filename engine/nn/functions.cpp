// SPDX-License-Identifier: MIT
// Layers of rows: products, norms, activations, dropout.
#include "engine/nn/functions.h"

#include "engine/nn/attributes.h"

namespace masquerade {
namespace {
struct LayerNormAttributes {
    double eps;
};
struct GeluAttributes {
    GeluKind kind;
};
struct DropoutAttributes {
    RowNames rows;
    DropoutRule rule;
};
struct ResidualNormAttributes {
    RowNames rows;
    DropoutRule rule;
    double eps;
};
}  // namespace

// The records' functions: named, so that a debugger shows and breaks on them.
namespace record {

void linear_forward(const Record& r) { masquerade::linear_forward(r.x(0), r.x(1), r.x(2), r.y()); }
void linear_backward(const Record& r) {
    Grad dx = r.dx(0), dw = r.dx(1), db = r.dx(2);
    masquerade::linear_backward(r.dy(), r.x(0), r.x(1), dx, dw, db);
}

void layernorm_forward(const Record& r) {
    masquerade::layernorm_forward(r.x(0), r.x(1), r.x(2), r.as<LayerNormAttributes>().eps, r.y(0), r.y(1),
                                  r.y(2));
}
void layernorm_backward(const Record& r) {
    Grad dx = r.dx(0), dw = r.dx(1), db = r.dx(2);
    masquerade::layernorm_backward(r.dy(), r.x(0), r.x(1), r.y(1), r.y(2), dx, dw, db);
}

void gelu_forward(const Record& r) { masquerade::gelu_forward(r.x(), r.as<GeluAttributes>().kind, r.y()); }
void gelu_backward(const Record& r) {
    masquerade::gelu_backward(r.dy(), r.x(), r.as<GeluAttributes>().kind, r.dx());
}

void linear_gelu_forward(const Record& r) {
    masquerade::linear_gelu_forward(r.x(0), r.x(1), r.x(2), r.as<GeluAttributes>().kind, r.y(0), r.y(1));
}
void gelu_linear_forward(const Record& r) { masquerade::linear_forward(r.x(1), r.x(2), r.x(3), r.y()); }
void gelu_linear_backward(const Record& r) {
    Grad du = r.dx(0), dw = r.dx(2), db = r.dx(3);
    masquerade::gelu_linear_backward(r.dy(), r.x(0), r.x(1), r.x(2), r.as<GeluAttributes>().kind, du, dw, db);
}

void convert_forward(const Record& r) { masquerade::convert_forward(r.x(), r.y()); }
void convert_backward(const Record& r) { masquerade::convert_backward(r.dy(), r.dx()); }

void add_forward(const Record& r) { masquerade::add_forward(r.x(0), r.x(1), r.y()); }
void add_backward(const Record& r) {
    Grad da = r.dx(0), db = r.dx(1);
    masquerade::add_backward(r.dy(), da, db);
}

void dropout_forward(const Record& r) {
    const auto& a = r.as<DropoutAttributes>();
    masquerade::dropout_forward(r.x(), a.rows, a.rule, r.y());
}
void dropout_backward(const Record& r) {
    const auto& a = r.as<DropoutAttributes>();
    masquerade::dropout_backward(r.dy(), a.rows, a.rule, r.dx());
}

void residual_norm_forward(const Record& r) {
    const auto& a = r.as<ResidualNormAttributes>();
    masquerade::residual_norm_forward(r.x(0), r.x(1), a.rows, a.rule, r.x(2), r.x(3), a.eps, r.y(1), r.y(0), r.y(2),
                                      r.y(3));
}
void residual_norm_backward(const Record& r) {
    const auto& a = r.as<ResidualNormAttributes>();
    Grad dx = r.dx(0), df = r.dx(1), dw = r.dx(2), db = r.dx(3);
    masquerade::residual_norm_backward(r.dy(), r.y(1), a.rows, a.rule, r.x(2), r.y(2), r.y(3), dx, df, dw, db);
}

}  // namespace record

namespace {
Tensor* linear(Tape& t, Tensor* x, Tensor* w, Tensor* b, DType type, const std::string& name) {
    Tensor* y = t.declare(name, {x->rows(), w->shape[0]}, type);
    return t.run(
        {"linear", {}, {x, w, b}, {y}, {x, w}, record::linear_forward, record::linear_backward, nullptr});
}
}  // namespace

Tensor* linear(Tape& t, Tensor* x, Tensor* w, Tensor* b, const std::string& name) {
    return linear(t, x, w, b, x->dtype, name);
}
Tensor* linear_unrounded(Tape& t, Tensor* x, Tensor* w, Tensor* b, const std::string& name) {
    return linear(t, x, w, b, arithmetic_of(x->dtype), name);
}

Tensor* layernorm(Tape& t, Tensor* x, Tensor* w, Tensor* b, double eps, const std::string& name) {
    DType a = arithmetic_of(x->dtype);
    Tensor *y = t.declare(name, x->shape, x->dtype), *mean = t.declare(name + ".mean", {x->rows()}, a),
           *rstd = t.declare(name + ".rstd", {x->rows()}, a);
    return t.run({"layernorm",
                  {},
                  {x, w, b},
                  {y, mean, rstd},
                  {x, w, mean, rstd},
                  record::layernorm_forward,
                  record::layernorm_backward,
                  attributes(LayerNormAttributes{eps})});
}

Tensor* gelu(Tape& t, Tensor* x, GeluKind kind, const std::string& name) {
    return t.run({"gelu",
                  {},
                  {x},
                  {t.declare(name, x->shape, x->dtype)},
                  {x},
                  record::gelu_forward,
                  record::gelu_backward,
                  attributes(GeluAttributes{kind})});
}

Activation linear_gelu(Tape& t, Tensor* x, Tensor* w, Tensor* b, GeluKind kind, const std::string& name,
                       const std::string& gelu_name) {
    Shape shape{x->rows(), w->shape[0]};
    Tensor *u = t.declare(name, shape, x->dtype), *a = t.declare(gelu_name, shape, x->dtype);
    t.run({"linear_gelu",
           {},
           {x, w, b},
           {u, a},
           {x, w},
           record::linear_gelu_forward,
           record::linear_backward,
           attributes(GeluAttributes{kind})});
    return {u, a, kind};
}

Tensor* gelu_linear(Tape& t, const Activation& x, Tensor* w, Tensor* b, const std::string& name) {
    return t.run({"gelu_linear",
                  {},
                  {x.u, x.a, w, b},
                  {t.declare(name, {x.u->rows(), w->shape[0]}, x.u->dtype)},
                  {x.u, x.a, w},
                  record::gelu_linear_forward,
                  record::gelu_linear_backward,
                  attributes(GeluAttributes{x.kind})});
}

Tensor* convert(Tape& t, Tensor* x, DType type, const std::string& name) {
    if (x->dtype == type) return x;
    return t.run({"convert",
                  {},
                  {x},
                  {t.declare(name, x->shape, type)},
                  {},
                  record::convert_forward,
                  record::convert_backward,
                  nullptr});
}

Tensor* add(Tape& t, Tensor* a, Tensor* b, const std::string& name) {
    return t.run({"add",
                  {},
                  {a, b},
                  {t.declare(name, a->shape, a->dtype)},
                  {},
                  record::add_forward,
                  record::add_backward,
                  nullptr});
}

Tensor* dropout(Tape& t, Tensor* x, const RowNames& rows, float rate, const std::string& name) {
    if (!t.training() || rate == 0) return x;
    return t.run({"dropout",
                  {},
                  {x},
                  {t.declare(name, x->shape, x->dtype)},
                  {},
                  record::dropout_forward,
                  record::dropout_backward,
                  attributes(DropoutAttributes{rows, {rate, t.stream(name)}})});
}

Tensor* residual_norm(Tape& t, Tensor* x, Tensor* f, const RowNames& rows, float rate, Tensor* w, Tensor* b, double eps,
                      const ResidualNames& names) {
    DType a = arithmetic_of(x->dtype);
    Tensor *y = t.declare(names.norm, x->shape, x->dtype), *s = t.declare(names.sum, x->shape, x->dtype),
           *mean = t.declare(names.norm + ".mean", {x->rows()}, a),
           *rstd = t.declare(names.norm + ".rstd", {x->rows()}, a);
    return t.run({"residual_norm",
                  {},
                  {x, f, w, b},
                  {y, s, mean, rstd},
                  {s, w, mean, rstd},
                  record::residual_norm_forward,
                  record::residual_norm_backward,
                  attributes(ResidualNormAttributes{
                      rows, {t.training() ? rate : 0, t.stream(names.dropout)}, eps})});
}

}  // namespace masquerade
