// SPDX-License-Identifier: MIT
// Layers of rows: products, norms, activations, dropout.
#include "engine/nn/functions.h"

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
    masquerade::layernorm_forward(r.x(0), r.x(1), r.x(2), r.as<LayerNormAttributes>().eps, r.y(0), r.y(1), r.y(2));
}
void layernorm_backward(const Record& r) {
    Grad dx = r.dx(0), dw = r.dx(1), db = r.dx(2);
    masquerade::layernorm_backward(r.dy(), r.x(0), r.x(1), r.y(1), r.y(2), dx, dw, db);
}

void gelu_forward(const Record& r) { masquerade::gelu_forward(r.x(), r.as<GeluAttributes>().kind, r.y()); }
void gelu_backward(const Record& r) { masquerade::gelu_backward(r.dy(), r.x(), r.as<GeluAttributes>().kind, r.dx()); }

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

void scale_columns_forward(const Record& r) { masquerade::scale_columns_forward(r.x(0), r.x(1), r.y()); }
void scale_columns_backward(const Record& r) {
    Grad dx = r.dx(0), dw = r.dx(1);
    masquerade::scale_columns_backward(r.dy(), r.x(0), r.x(1), dx, dw);
}

View in_shape_of(View view, const View& other) {
    view.shape = other.shape;
    return view;
}
void reshape_forward(const Record& r) { masquerade::convert_forward(in_shape_of(r.x(), r.y()), r.y()); }
void reshape_backward(const Record& r) {
    const Grad dx = r.dx();
    masquerade::convert_backward(in_shape_of(r.dy(), dx.view), dx);
}

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
        Record("linear").reads({x, w, b}).makes({y}).keeps({x, w}).by(record::linear_forward, record::linear_backward));
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
    return t.run(Record("layernorm")
                     .reads({x, w, b})
                     .makes({y, mean, rstd})
                     .keeps({x, w, mean, rstd})
                     .by(record::layernorm_forward, record::layernorm_backward, LayerNormAttributes{eps}));
}

Tensor* gelu(Tape& t, Tensor* x, GeluKind kind, const std::string& name) {
    return t.run(Record("gelu")
                     .reads({x})
                     .makes({t.declare(name, x->shape, x->dtype)})
                     .keeps({x})
                     .by(record::gelu_forward, record::gelu_backward, GeluAttributes{kind}));
}

Activation linear_gelu(Tape& t, Tensor* x, Tensor* w, Tensor* b, GeluKind kind, const std::string& name,
                       const std::string& gelu_name) {
    Shape shape{x->rows(), w->shape[0]};
    Tensor *u = t.declare(name, shape, x->dtype), *a = t.declare(gelu_name, shape, x->dtype);
    t.run(Record("linear_gelu")
              .reads({x, w, b})
              .makes({u, a})
              .keeps({x, w})
              .by(record::linear_gelu_forward, record::linear_backward, GeluAttributes{kind}));
    return {u, a, kind};
}

Tensor* gelu_linear(Tape& t, const Activation& x, Tensor* w, Tensor* b, const std::string& name) {
    return t.run(Record("gelu_linear")
                     .reads({x.u, x.a, w, b})
                     .makes({t.declare(name, {x.u->rows(), w->shape[0]}, x.u->dtype)})
                     .keeps({x.u, x.a, w})
                     .by(record::gelu_linear_forward, record::gelu_linear_backward, GeluAttributes{x.kind}));
}

Tensor* convert(Tape& t, Tensor* x, DType type, const std::string& name) {
    if (x->dtype == type) return x;
    return t.run(Record("convert")
                     .reads({x})
                     .makes({t.declare(name, x->shape, type)})
                     .by(record::convert_forward, record::convert_backward));
}

Tensor* scale_columns(Tape& t, Tensor* x, Tensor* w, const std::string& name) {
    return t.run(Record("scale_columns")
                     .reads({x, w})
                     .makes({t.declare(name, x->shape, x->dtype)})
                     .keeps({x, w})
                     .by(record::scale_columns_forward, record::scale_columns_backward));
}

Tensor* reshape(Tape& t, Tensor* x, const Shape& shape, const std::string& name) {
    Tensor* y = t.declare(name, shape, x->dtype);
    if (shape.count() != x->shape.count())
        throw Error(text("reshape: ", x->path, " ", x->shape, " does not have the numbers of ", shape));
    return t.run(Record("reshape").reads({x}).makes({y}).by(record::reshape_forward, record::reshape_backward));
}

Tensor* add(Tape& t, Tensor* a, Tensor* b, const std::string& name) {
    return t.run(Record("add")
                     .reads({a, b})
                     .makes({t.declare(name, a->shape, a->dtype)})
                     .by(record::add_forward, record::add_backward));
}

Tensor* dropout(Tape& t, Tensor* x, const RowNames& rows, float rate, const std::string& name) {
    if (!t.training() || rate == 0) return x;
    return t.run(
        Record("dropout")
            .reads({x})
            .makes({t.declare(name, x->shape, x->dtype)})
            .by(record::dropout_forward, record::dropout_backward, DropoutAttributes{rows, {rate, t.stream(name)}}));
}

Tensor* residual_norm(Tape& t, Tensor* x, Tensor* f, const RowNames& rows, float rate, Tensor* w, Tensor* b, double eps,
                      const ResidualNames& names) {
    DType a = arithmetic_of(x->dtype);
    Tensor *y = t.declare(names.norm, x->shape, x->dtype), *s = t.declare(names.sum, x->shape, x->dtype),
           *mean = t.declare(names.norm + ".mean", {x->rows()}, a),
           *rstd = t.declare(names.norm + ".rstd", {x->rows()}, a);
    const DropoutRule rule{t.training() ? rate : 0, t.stream(names.dropout)};
    return t.run(Record("residual_norm")
                     .reads({x, f, w, b})
                     .makes({y, s, mean, rstd})
                     .keeps({s, w, mean, rstd})
                     .by(record::residual_norm_forward, record::residual_norm_backward,
                         ResidualNormAttributes{rows, rule, eps}));
}

}  // namespace masquerade
