// SPDX-License-Identifier: MIT
// Lab 1, solved. The backward calls the ops of the forward in reverse order. If two ops write a gradient, the first one
// stores it, and the second one adds to it.
#include "docs/labs/01/lab.h"

namespace lab {
namespace {

AttentionRule heads_of(const Model& m) {
    AttentionRule rule;
    rule.heads = m.size.H;
    return rule;
}

void apply(const Linear& to, const Matrix& x, const Matrix& y) { linear_forward(x, to.w, to.b, y); }
void apply(const Norm& to, const Matrix& x, const Matrix& y) {
    layernorm_forward(x, to.w, to.b, eps, y, to.mean, to.rstd);
}

void apply_backward(const Linear& to, const Matrix& y, const Matrix& x, Grad dx) {
    linear_backward(y.d(), x, to.w, dx, to.w.stored(), to.b.stored());
}
void apply_backward(const Norm& to, const Matrix& y, const Matrix& x, Grad dx) {
    layernorm_backward(y.d(), x, to.w, to.mean, to.rstd, dx, to.w.stored(), to.b.stored());
}

}  // namespace

double forward(Model& m, const Batch& batch) {
    embedding_forward(list(batch.ids), m.token, m.x);
    apply(m.norm1, m.x, m.n1);
    apply(m.query, m.n1, m.q);
    apply(m.key_value, m.n1, m.kv);
    attention_forward(m.q, Views{m.kv}, causal_mask(batch.documents), heads_of(m), m.attended, m.lse);
    apply(m.output, m.attended, m.projected);
    add_forward(m.x, m.projected, m.s1);
    apply(m.norm2, m.s1, m.n2);
    apply(m.up, m.n2, m.u);
    gelu_forward(m.u, GeluKind::erf, m.a);
    apply(m.down, m.a, m.outer);
    add_forward(m.s1, m.outer, m.s2);
    apply(m.norm3, m.s2, m.h);
    cross_entropy_forward(m.h, m.token, m.bias, list(batch.targets), batch.weights, 0, m.losses, m.lse_words, m.loss,
                          m.h1, m.token1, m.bias1);
    return m.loss.numbers[0];
}

void backward(Model& m, const Batch& batch) {
    m.loss.gradient[0] = 1;
    cross_entropy_backward(m.loss.d(), m.h1, m.token1, m.bias1, m.h.stored(), m.token.stored(), m.bias.stored());
    apply_backward(m.norm3, m.h, m.s2, m.s2.stored());
    add_backward(m.s2.d(), m.s1.stored(), m.outer.stored());
    apply_backward(m.down, m.outer, m.a, m.a.stored());
    gelu_backward(m.a.d(), m.u, GeluKind::erf, m.u.stored());
    apply_backward(m.up, m.u, m.n2, m.n2.stored());
    apply_backward(m.norm2, m.n2, m.s1, m.s1.added());
    add_backward(m.s1.d(), m.x.stored(), m.projected.stored());
    apply_backward(m.output, m.projected, m.attended, m.attended.stored());
    attention_backward(m.attended.d(), m.q, Views{m.kv}, m.attended, m.lse, causal_mask(batch.documents), heads_of(m),
                       m.q.stored(), Grads{m.kv.stored()});
    apply_backward(m.query, m.q, m.n1, m.n1.stored());
    apply_backward(m.key_value, m.kv, m.n1, m.n1.added());
    apply_backward(m.norm1, m.n1, m.x, m.x.added());
    embedding_backward(m.x.d(), list(batch.ids), m.token.added());
}

void update(Model& m, double rate) {
    for (Matrix* p : m.parameters())
        for (std::int64_t i = 0; i < p->shape.count(); i++) p->numbers[i] -= rate * p->gradient[i];
}

}  // namespace lab
