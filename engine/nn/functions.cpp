// SPDX-License-Identifier: MIT
// Functions on the tape for linear layers, layer norm, gelu, dropout, sums, conversions and changes of shape.
#include "engine/nn/functions.h"
#include "engine/tape/op_record.h"

namespace masquerade {
namespace {

// The inputs of a gelu_linear() record are u, a = gelu(u), w and b. The backward of the record computes the gradient of
// u, not of a.
void gelu_linear_record_forward(const Record& r) { linear_forward(r.x(1), r.x(2), r.x(3), r.y()); }
void gelu_linear_record_backward(const Record& r) {
    const Grad du = r.dx(0), dw = r.dx(2), db = r.dx(3);
    gelu_linear_backward(r.dy(), r.x(0), r.x(1), r.x(2), r.as<GeluKind>(), du, dw, db);
}
void linear_gelu_record_backward(const Record& r) {
    const Grad dx = r.dx(0), dw = r.dx(1), db = r.dx(2);
    linear_backward(r.dy(), r.x(0), r.x(1), dx, dw, db);
}

void reshape_record_forward(const Record& r) { convert_forward(part_of(r.x(), 0, r.y().shape), r.y()); }
void reshape_record_backward(const Record& r) {
    const Grad dx = r.dx();
    convert_backward(part_of(r.dy(), 0, dx.view.shape), dx);
}

Tensor* linear(Tape& t, Tensor* x, Tensor* w, Tensor* b, DType type, const std::string& name) {
    Tensor* y = t.declare(name, {x->rows(), w->shape[0]}, type);
    return t.run(Record("linear").reads({x, w, b}).makes({y}).by(linear_forward, linear_backward));
}
}  // namespace

Tensor* linear(Tape& t, Tensor* x, Tensor* w, Tensor* b, const std::string& name) {
    return linear(t, x, w, b, x->dtype, name);
}
Tensor* linear_unrounded(Tape& t, Tensor* x, Tensor* w, Tensor* b, const std::string& name) {
    return linear(t, x, w, b, arithmetic_of(x->dtype), name);
}

Tensor* layernorm(Tape& t, Tensor* x, Tensor* w, Tensor* b, double eps, const std::string& name) {
    return run_op(t, name, layernorm_forward, layernorm_backward, {x, w, b}, eps);
}

Tensor* gelu(Tape& t, Tensor* x, GeluKind kind, const std::string& name) {
    return run_op(t, name, gelu_forward, gelu_backward, {x}, kind);
}

Activation linear_gelu(Tape& t, Tensor* x, Tensor* w, Tensor* b, GeluKind kind, const std::string& name,
                       const std::string& gelu_name) {
    Shape shape{x->rows(), w->shape[0]};
    Tensor *u = t.declare(name, shape, x->dtype), *a = t.declare(gelu_name, shape, x->dtype);
    t.run(Record("linear_gelu")
              .reads({x, w, b})
              .makes({u, a})
              .by(linear_gelu_forward, linear_gelu_record_backward, kind)
              .keeps({x, w}));
    return {u, a, kind};
}

Tensor* gelu_linear(Tape& t, const Activation& x, Tensor* w, Tensor* b, const std::string& name) {
    Tensor* y = t.declare(name, {x.u->rows(), w->shape[0]}, x.u->dtype);
    return t.run(Record("gelu_linear")
                     .reads({x.u, x.a, w, b})
                     .makes({y})
                     .by(gelu_linear_record_forward, gelu_linear_record_backward, x.kind)
                     .keeps({x.u, x.a, w}));
}

Tensor* convert(Tape& t, Tensor* x, DType type, const std::string& name) {
    if (x->dtype == type) return x;
    Tensor* y = t.declare(name, x->shape, type);
    return t.run(Record("convert").reads({x}).makes({y}).by(convert_forward, convert_backward));
}

Tensor* scale_columns(Tape& t, Tensor* x, Tensor* w, const std::string& name) {
    return run_op(t, name, scale_columns_forward, scale_columns_backward, {x, w});
}

Tensor* reshape(Tape& t, Tensor* x, const Shape& shape, const std::string& name) {
    Tensor* y = t.declare(name, shape, x->dtype);
    if (shape.count() != x->shape.count())
        throw Error("reshape: ", x->path, " ", x->shape, " does not have the numbers of ", shape);
    return t.run(Record("reshape").reads({x}).makes({y}).by(reshape_record_forward, reshape_record_backward));
}

Tensor* add(Tape& t, Tensor* a, Tensor* b, const std::string& name) {
    return run_op(t, name, add_forward, add_backward, {a, b});
}

Tensor* dropout(Tape& t, Tensor* x, const RowNames& rows, float rate, const std::string& name) {
    if (!t.training() || rate == 0) return x;
    return run_op(t, name, dropout_forward, dropout_backward, {x}, rows, DropoutRule{rate, t.stream(name)});
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
                     .by(residual_norm_forward, residual_norm_backward, rows, rule, eps));
}

}  // namespace masquerade
