// SPDX-License-Identifier: MIT
// The slots of an insertion decoder: their logits, their loss, and what is made of all slots of a document.
#include "engine/nn/functions.h"

namespace masquerade {
namespace {
struct ChosenLogitsAttributes {
    Ints groups, rows, tokens;
};
struct SlotLossAttributes {
    Ints first, begin;
    bool joint;
    int K;
};
View shaped(View v, const Shape& shape) {
    v.shape = shape;
    return v;
}
// h (M,K E) as (M K,E)
View rows_as_wide_as(View h, const View& w) { return shaped(h, {w.columns() > 0 ? h.count() / w.columns() : h.rows(), w.columns()}); }
View flat(View v) { return shaped(v, {v.count()}); }
}  // namespace

namespace record {

void tanh_forward(const Record& r) { masquerade::tanh_forward(r.x(), r.y()); }
void tanh_backward(const Record& r) { masquerade::tanh_backward(r.dy(), r.y(), r.dx()); }

void max_rows_forward(const Record& r) { masquerade::max_rows_forward(r.x(), r.as<Ints>(), r.y()); }
void max_rows_backward(const Record& r) { masquerade::max_rows_backward(r.dy(), r.x(), r.as<Ints>(), r.dx()); }

void chosen_logits_forward(const Record& r) {
    const auto& a = r.as<ChosenLogitsAttributes>();
    masquerade::chosen_logits_forward(rows_as_wide_as(r.x(0), r.x(1)), r.x(1), r.x(2), r.x(3), a.groups, a.rows, a.tokens, r.y(0),
                                      flat(r.y(1)));
}
void chosen_logits_backward(const Record& r) {
    const auto& a = r.as<ChosenLogitsAttributes>();
    Grad dh = r.dx(0), dw = r.dx(1), db = r.dx(2), dbias = r.dx(3);
    if (dh) dh.view = rows_as_wide_as(dh.view, r.x(1));
    masquerade::chosen_logits_backward(r.dy(0), flat(r.dy(1)), rows_as_wide_as(r.x(0), r.x(1)), r.x(1), r.x(2), r.x(3),
                                       flat(r.y(1)), a.groups, a.rows, a.tokens, dh, dw, db, dbias);
}

// z, lse, mix, place and shares go in; loss, base and inner come out.
void slot_loss_forward(const Record& r) {
    const auto& a = r.as<SlotLossAttributes>();
    const View z = shaped(r.x(0), {r.x(4).count(), a.K}), lse = shaped(r.x(1), {a.begin.count - 1, a.K});
    masquerade::slot_loss_forward(z, lse, r.x(2), r.x(3), a.first, a.begin, r.x(4), a.joint, r.y(0), r.y(1), r.y(2));
}
void slot_loss_backward(const Record& r) {
    const auto& a = r.as<SlotLossAttributes>();
    const View z = shaped(r.x(0), {r.x(4).count(), a.K}), lse = shaped(r.x(1), {a.begin.count - 1, a.K});
    Grad dz = r.dx(0), dlse = r.dx(1), dmix = r.dx(2), dplace = r.dx(3);
    if (dz) dz.view.shape = z.shape;
    if (dlse) dlse.view.shape = lse.shape;
    masquerade::slot_loss_backward(r.dy(), z, lse, r.x(2), r.x(3), a.first, a.begin, r.x(4), a.joint, r.y(1), r.y(2), dz, dlse,
                                   dmix, dplace);
}

}  // namespace record

Tensor* tanh(Tape& t, Tensor* x, const std::string& name) {
    Tensor* y = t.declare(name, x->shape, x->dtype);
    return t.run(Record("tanh").reads({x}).makes({y}).keeps({y}).by(record::tanh_forward, record::tanh_backward));
}

Tensor* max_rows(Tape& t, Tensor* x, Ints first, const std::string& name) {
    return t.run(Record("max_rows").reads({x}).makes({t.declare(name, {first.count - 1, x->columns()}, x->dtype)}).keeps({x})
              .by(record::max_rows_forward, record::max_rows_backward, first));
}

ChosenLogits chosen_logits(Tape& t, Tensor* h, Tensor* w, Tensor* b, Tensor* bias, Ints groups, Ints rows, Ints tokens,
                           const std::string& name) {
    const DType a = arithmetic_of(h->dtype);
    const std::int64_t E = w->columns(), K = E > 0 ? h->columns() / E : 1;
    if (E * K != h->columns())
        throw Error(text("chosen_logits of ", h->path, " ", h->shape, ": the columns are no multiple of those of ", w->path, " ", w->shape));
    Tensor *z = t.declare(name, {rows.count}, a),
           *lse = t.declare(name + ".lse", K > 1 ? Shape{h->rows(), K} : Shape{h->rows()}, a);
    Record r = Record("chosen_logits").reads({h, w, b, bias}).makes({z, lse}, 2).keeps({h, w, lse})
              .by(record::chosen_logits_forward, record::chosen_logits_backward, ChosenLogitsAttributes{groups, rows, tokens});
    for (Tensor* more : {b, bias})
        if (more) r.keep.push_back(more);
    t.run(std::move(r));
    return {z, lse};
}

Tensor* slot_loss(Tape& t, const ChosenLogits& logits, Tensor* mix, Tensor* place, const SlotChoices& choices, bool joint,
                  const std::string& name) {
    const DType a = logits.z->dtype;
    const int K = mix ? int(mix->columns()) : 1;
    const std::int64_t M = choices.begin.count - 1, B = choices.first.count - 1, J = choices.shares->shape.count();
    if (logits.z->shape.count() != J * K || logits.lse->shape.count() != M * K)
        throw Error(text("slot_loss of ", logits.z->path, " ", logits.z->shape, " and ", logits.lse->path, " ", logits.lse->shape,
                         ": expected ", J, " choices and ", M, " slots of ", K, " each"));
    Tensor *loss = t.declare(name, {B}, a), *base = t.declare(name + ".base", {joint ? B : M, K}, a),
           *inner = t.declare(name + ".inner", {J}, a);
    Record r = Record("slot_loss").reads({logits.z, logits.lse, mix, place, choices.shares}).makes({loss, base, inner})
              .keeps({logits.z, choices.shares, base, inner})
              .by(record::slot_loss_forward, record::slot_loss_backward, SlotLossAttributes{choices.first, choices.begin, joint, K});
    for (Tensor* more : {joint ? logits.lse : nullptr, mix, place})
        if (more) r.keep.push_back(more);
    return t.run(std::move(r));
}

}  // namespace masquerade
