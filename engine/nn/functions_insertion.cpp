// SPDX-License-Identifier: MIT
// The slots of an insertion decoder: their logits, their loss, and what is made of all slots of a document.
#include "engine/nn/functions.h"

#include <algorithm>

namespace masquerade {
namespace {
struct ChosenLogitsAttributes {
    Ints groups, slots, tokens;
};
struct SlotLossAttributes {
    Ints first, begin;
    bool joint;
};
}  // namespace

namespace record {

void tanh_forward(const Record& r) { masquerade::tanh_forward(r.x(), r.y()); }
void tanh_backward(const Record& r) { masquerade::tanh_backward(r.dy(), r.y(), r.dx()); }

void max_rows_forward(const Record& r) { masquerade::max_rows_forward(r.x(), r.as<Ints>(), r.y()); }
void max_rows_backward(const Record& r) { masquerade::max_rows_backward(r.dy(), r.x(), r.as<Ints>(), r.dx()); }

void chosen_logits_forward(const Record& r) {
    const auto& a = r.as<ChosenLogitsAttributes>();
    masquerade::chosen_logits_forward(r.x(0), r.x(1), r.x(2), r.x(3), a.groups, a.slots, a.tokens, r.y(0), r.y(1));
}
void chosen_logits_backward(const Record& r) {
    const auto& a = r.as<ChosenLogitsAttributes>();
    Grad dh = r.dx(0), dw = r.dx(1), db = r.dx(2), dbias = r.dx(3);
    masquerade::chosen_logits_backward(r.dy(0), r.dy(1), r.x(0), r.x(1), r.x(2), r.x(3), r.y(1), a.groups, a.slots,
                                       a.tokens, dh, dw, db, dbias);
}

// z, lse, mix, place and shares go in; loss, base and inner come out.
void slot_loss_forward(const Record& r) {
    const auto& a = r.as<SlotLossAttributes>();
    masquerade::slot_loss_forward(r.x(0), r.x(1), r.x(2), r.x(3), a.first, a.begin, r.x(4), a.joint, r.y(0), r.y(1),
                                  r.y(2));
}
void slot_loss_backward(const Record& r) {
    const auto& a = r.as<SlotLossAttributes>();
    Grad dz = r.dx(0), dlse = r.dx(1), dmix = r.dx(2), dplace = r.dx(3);
    masquerade::slot_loss_backward(r.dy(), r.x(0), r.x(1), r.x(2), r.x(3), a.first, a.begin, r.x(4), a.joint, r.y(1),
                                   r.y(2), dz, dlse, dmix, dplace);
}

}  // namespace record

Tensor* tanh(Tape& t, Tensor* x, const std::string& name) {
    Tensor* y = t.declare(name, x->shape, x->dtype);
    return t.run(Record("tanh").reads({x}).makes({y}).keeps({y}).by(record::tanh_forward, record::tanh_backward));
}

Tensor* max_rows(Tape& t, Tensor* x, Ints first, const std::string& name) {
    return t.run(Record("max_rows")
                     .reads({x})
                     .makes({t.declare(name, {first.count - 1, x->columns()}, x->dtype)})
                     .keeps({x})
                     .by(record::max_rows_forward, record::max_rows_backward, first));
}

ChosenLogits chosen_logits(Tape& t, Tensor* h, Tensor* w, Tensor* b, Tensor* bias, Ints groups, Ints slots, Ints tokens,
                           const std::string& name) {
    const DType a = arithmetic_of(h->dtype);
    const std::int64_t K = h->columns() / std::max<std::int64_t>(w->columns(), 1);
    Tensor *z = t.declare(name, {slots.count, K}, a), *lse = t.declare(name + ".lse", {h->rows(), K}, a);
    Record r = Record("chosen_logits")
                   .reads({h, w, b, bias})
                   .makes({z, lse}, 2)
                   .keeps({h, w, lse})
                   .by(record::chosen_logits_forward, record::chosen_logits_backward,
                       ChosenLogitsAttributes{groups, slots, tokens});
    for (Tensor* more : {b, bias})
        if (more) r.keep.push_back(more);
    t.run(std::move(r));
    return {z, lse};
}

Tensor* slot_loss(Tape& t, const ChosenLogits& logits, Tensor* mix, Tensor* place, const SlotChoices& choices,
                  bool joint, const std::string& name) {
    const Tensor &z = *logits.z, &lse = *logits.lse;
    const std::int64_t B = choices.first.count - 1;
    Tensor *loss = t.declare(name, {B}, z.dtype),
           *base = t.declare(name + ".base", {joint ? B : lse.rows(), lse.columns()}, z.dtype),
           *inner = t.declare(name + ".inner", {z.rows()}, z.dtype);
    Record r = Record("slot_loss")
                   .reads({logits.z, logits.lse, mix, place, choices.shares})
                   .makes({loss, base, inner})
                   .keeps({logits.z, choices.shares, base, inner})
                   .by(record::slot_loss_forward, record::slot_loss_backward,
                       SlotLossAttributes{choices.first, choices.begin, joint});
    for (Tensor* more : {joint ? logits.lse : nullptr, mix, place})
        if (more) r.keep.push_back(more);
    return t.run(std::move(r));
}

}  // namespace masquerade
