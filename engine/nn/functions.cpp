// SPDX-License-Identifier: MIT
#include "engine/nn/functions.h"

#include <cmath>

namespace masquerade {

// What each op's record needs beside its tensors.
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
struct IndexAttributes {
    Ints ints;
};
struct RotaryAttributes {
    Ints positions;
    int columns;
};
struct CrossEntropyAttributes {
    Ints targets;
    int h1, w1, b1;  // which output each is, 0 where it is absent
};
struct AttentionAttributes {
    const SegmentGraph* graph;
    AttentionRule rule;
};

template <class T>
std::shared_ptr<const void> attributes(T value) {
    return std::make_shared<const T>(std::move(value));
}
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

void embedding_forward(const Record& r) {
    masquerade::embedding_forward(r.as<IndexAttributes>().ints, r.x(), r.y());
}
void embedding_backward(const Record& r) {
    masquerade::embedding_backward(r.dy(), r.as<IndexAttributes>().ints, r.dx());
}

void rotary_forward(const Record& r) {
    const auto& a = r.as<RotaryAttributes>();
    masquerade::rotary_forward(r.x(0), a.positions, r.x(1), a.columns, r.y());
}
void rotary_backward(const Record& r) {
    const auto& a = r.as<RotaryAttributes>();
    masquerade::rotary_backward(r.dy(), a.positions, r.x(1), a.columns, r.dx(0));
}

void linear_rotary_forward(const Record& r) {
    const auto& a = r.as<RotaryAttributes>();
    masquerade::linear_rotary_forward(r.x(0), r.x(1), r.x(2), a.positions, r.x(3), a.columns, r.y());
}
void linear_rotary_backward(const Record& r) {
    const auto& a = r.as<RotaryAttributes>();
    Grad dx = r.dx(0), dw = r.dx(1), db = r.dx(2);
    masquerade::linear_rotary_backward(r.dy(), r.x(0), r.x(1), a.positions, r.x(3), a.columns, dx, dw, db);
}

Views key_values(const Record& r) {
    Views kv;
    for (std::size_t i = 1; i < r.in.size(); i++) kv.v[kv.count++] = r.in[i]->view();
    return kv;
}
void attention_forward(const Record& r) {
    const auto& a = r.as<AttentionAttributes>();
    masquerade::attention_forward(r.x(0), key_values(r), *a.graph, a.rule, r.y(0), r.y(1));
}
void attention_backward(const Record& r) {
    const auto& a = r.as<AttentionAttributes>();
    Grad dq = r.dx(0);
    Grads dkv;
    for (std::size_t i = 1; i < r.in.size(); i++) dkv.g[dkv.count++] = r.dx(int(i));
    masquerade::attention_backward(r.dy(), r.x(0), key_values(r), r.y(0), r.y(1), *a.graph, a.rule, dq, dkv);
}

void gather_rows_forward(const Record& r) {
    masquerade::gather_rows_forward(r.x(), r.as<IndexAttributes>().ints, r.y());
}
void gather_rows_backward(const Record& r) {
    masquerade::gather_rows_backward(r.dy(), r.as<IndexAttributes>().ints, r.dx());
}

void replace_rows_forward(const Record& r) {
    masquerade::replace_rows_forward(r.x(0), r.as<IndexAttributes>().ints, r.x(1), r.y());
}
void replace_rows_backward(const Record& r) {
    Grad dx = r.dx(0), du = r.dx(1);
    masquerade::replace_rows_backward(r.dy(), r.as<IndexAttributes>().ints, dx, du);
}

void normalise_forward(const Record& r) { masquerade::normalise_forward(r.x(), r.y(0), r.y(1)); }
void normalise_backward(const Record& r) { masquerade::normalise_backward(r.dy(), r.y(0), r.y(1), r.dx()); }

void vmf_sample_forward(const Record& r) { masquerade::vmf_sample_forward(r.x(0), r.x(1), r.x(2), r.y()); }
void vmf_sample_backward(const Record& r) {
    masquerade::vmf_sample_backward(r.dy(), r.x(0), r.x(1), r.x(2), r.dx(0));
}

void gaussian_sample_forward(const Record& r) { masquerade::gaussian_sample_forward(r.x(0), r.x(1), r.y()); }
void gaussian_sample_backward(const Record& r) {
    masquerade::gaussian_sample_backward(r.dy(), r.x(0), r.x(1), r.dx(0));
}
void gaussian_kl_forward(const Record& r) { masquerade::gaussian_kl_forward(r.x(), r.y()); }
void gaussian_kl_backward(const Record& r) { masquerade::gaussian_kl_backward(r.dy(), r.x(), r.dx()); }

// The outputs are total, loss, lse and what is wanted of h1, w1, b1.
View share(const Record& r, int output) { return output > 0 ? r.y(output) : View{}; }
void cross_entropy_forward(const Record& r) {
    const auto& a = r.as<CrossEntropyAttributes>();
    masquerade::cross_entropy_forward(r.x(0), r.x(1), r.x(2), a.targets, r.x(3), r.y(1), r.y(2), r.y(0),
                                      share(r, a.h1), share(r, a.w1), share(r, a.b1));
}
void cross_entropy_backward(const Record& r) {
    const auto& a = r.as<CrossEntropyAttributes>();
    Grad dh = r.dx(0), dw = r.dx(1), db = r.dx(2);
    masquerade::cross_entropy_backward(r.dy(), share(r, a.h1), share(r, a.w1), share(r, a.b1), dh, dw, db);
}
void token_losses_forward(const Record& r) {
    const View absent;
    masquerade::cross_entropy_forward(r.x(0), r.x(1), r.x(2), r.as<IndexAttributes>().ints, absent, r.y(0),
                                      r.y(1), absent, absent, absent, absent);
}

void weighted_sum_forward(const Record& r) { masquerade::weighted_sum_forward(r.x(0), r.x(1), r.y()); }
void weighted_sum_backward(const Record& r) { masquerade::weighted_sum_backward(r.dy(), r.x(1), r.dx(0)); }

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

Tensor* embedding(Tape& t, Ints ids, Tensor* w, const std::string& name) {
    return t.run({"embedding",
                  {},
                  {w},
                  {t.declare(name, {ids.count, w->columns()}, w->dtype)},
                  {},
                  record::embedding_forward,
                  record::embedding_backward,
                  attributes(IndexAttributes{ids})});
}

Tensor* rotary(Tape& t, Tensor* x, Ints positions, Tensor* turns, int columns, const std::string& name) {
    return t.run({"rotary",
                  {},
                  {x, turns},
                  {t.declare(name, x->shape, x->dtype)},
                  {turns},
                  record::rotary_forward,
                  record::rotary_backward,
                  attributes(RotaryAttributes{positions, columns})});
}

Tensor* linear_rotary(Tape& t, Tensor* x, Tensor* w, Tensor* b, Ints positions, Tensor* turns, int columns,
                      const std::string& name) {
    return t.run({"linear_rotary",
                  {},
                  {x, w, b, turns},
                  {t.declare(name, {x->rows(), w->shape[0]}, x->dtype)},
                  {x, w, turns},
                  record::linear_rotary_forward,
                  record::linear_rotary_backward,
                  attributes(RotaryAttributes{positions, columns})});
}

Tensor* attention(Tape& t, Tensor* q, const std::vector<Tensor*>& kv, const SegmentGraph& graph, int heads,
                  float dropout_rate, const RowNames& query_rows, const std::string& name) {
    Tensor *y = t.declare(name, q->shape, q->dtype),
           *lse = t.declare(name + ".lse", {q->rows(), heads}, arithmetic_of(q->dtype));
    AttentionRule rule{heads, t.training() ? dropout_rate : 0, t.stream(name), query_rows};
    Record r{"attention",
             {},
             {q},
             {y, lse},
             {q},
             record::attention_forward,
             record::attention_backward,
             attributes(AttentionAttributes{&t.graph(graph), rule})};
    r.in.insert(r.in.end(), kv.begin(), kv.end());
    r.keep = r.in;
    r.keep.insert(r.keep.end(), {y, lse});
    return t.run(std::move(r));
}

Tensor* gather_rows(Tape& t, Tensor* x, Ints rows, const std::string& name) {
    return t.run({"gather_rows",
                  {},
                  {x},
                  {t.declare(name, {rows.count, x->columns()}, x->dtype)},
                  {},
                  record::gather_rows_forward,
                  record::gather_rows_backward,
                  attributes(IndexAttributes{rows})});
}

Tensor* replace_rows(Tape& t, Tensor* x, Ints which, Tensor* u, const std::string& name) {
    return t.run({"replace_rows",
                  {},
                  {x, u},
                  {t.declare(name, x->shape, x->dtype)},
                  {},
                  record::replace_rows_forward,
                  record::replace_rows_backward,
                  attributes(IndexAttributes{which})});
}

Tensor* normalise(Tape& t, Tensor* x, const std::string& name) {
    Tensor *y = t.declare(name, x->shape, x->dtype),
           *inverse = t.declare(name + ".inverse", {x->rows()}, x->dtype);
    return t.run({"normalise",
                  {},
                  {x},
                  {y, inverse},
                  {y, inverse},
                  record::normalise_forward,
                  record::normalise_backward,
                  nullptr});
}

Tensor* vmf_sample(Tape& t, Tensor* mu, Tensor* w, Tensor* e, const std::string& name) {
    return t.run({"vmf_sample",
                  {},
                  {mu, w, e},
                  {t.declare(name, mu->shape, mu->dtype)},
                  {mu, w, e},
                  record::vmf_sample_forward,
                  record::vmf_sample_backward,
                  nullptr});
}

Tensor* gaussian_sample(Tape& t, Tensor* x, Tensor* e, const std::string& name) {
    return t.run({"gaussian_sample",
                  {},
                  {x, e},
                  {t.declare(name, e->shape, x->dtype)},
                  {x, e},
                  record::gaussian_sample_forward,
                  record::gaussian_sample_backward,
                  nullptr});
}

Tensor* gaussian_kl(Tape& t, Tensor* x, const std::string& name) {
    return t.run({"gaussian_kl",
                  {},
                  {x},
                  {t.declare(name, {x->rows()}, x->dtype)},
                  {x},
                  record::gaussian_kl_forward,
                  record::gaussian_kl_backward,
                  nullptr});
}

Tensor* cross_entropy(Tape& t, Tensor* h, Tensor* w, Tensor* b, Ints targets, Tensor* weights,
                      const std::string& name, Tensor** losses) {
    DType a = arithmetic_of(h->dtype);
    Tensor *total = t.declare(name, {1}, a), *loss = t.declare(name + ".losses", {h->rows()}, a),
           *lse = t.declare(name + ".lse", {h->rows()}, a);
    Record r{"cross_entropy",
             {},
             {h, w, b, weights},
             {total, loss, lse},
             {},
             record::cross_entropy_forward,
             record::cross_entropy_backward,
             nullptr};
    auto share = [&](const Tensor* of, const char* suffix, DType type) {
        if (!of || !of->needs_grad) return 0;
        r.out.push_back(t.declare(name + suffix, of->shape, type));
        r.keep.push_back(r.out.back());
        return int(r.out.size()) - 1;
    };
    const int h1 = share(h, ".h1", h->dtype), w1 = share(w, ".w1", a), b1 = share(b, ".b1", a);
    r.attributes = attributes(CrossEntropyAttributes{targets, h1, w1, b1});
    if (losses) *losses = loss;
    return t.run(std::move(r));
}

Tensor* token_losses(Tape& t, Tensor* h, Tensor* w, Tensor* b, Ints targets, const std::string& name) {
    DType a = arithmetic_of(h->dtype);
    Tensor *loss = t.declare(name, {h->rows()}, a), *lse = t.declare(name + ".lse", {h->rows()}, a);
    return t.run({"token_losses",
                  {},
                  {h, w, b},
                  {loss, lse},
                  {},
                  record::token_losses_forward,
                  nullptr,
                  attributes(IndexAttributes{targets})});
}

Tensor* weighted_sum(Tape& t, Tensor* x, Tensor* weights, const std::string& name) {
    return t.run({"weighted_sum",
                  {},
                  {x, weights},
                  {t.declare(name, {1}, x->dtype)},
                  {weights},
                  record::weighted_sum_forward,
                  record::weighted_sum_backward,
                  nullptr});
}

std::vector<double> rotary_turns(int P, int D, double base) {
    std::vector<double> turns(std::size_t(P) * std::size_t(D));
    for (int p = 0; p < P; p++)
        for (int i = 0; i < D; i += 2) {
            double angle = p * std::pow(base, -double(i) / D);
            turns[std::size_t(p) * std::size_t(D) + std::size_t(i)] = std::cos(angle);
            turns[std::size_t(p) * std::size_t(D) + std::size_t(i) + 1] = std::sin(angle);
        }
    return turns;
}

}  // namespace masquerade
