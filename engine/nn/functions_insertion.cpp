// SPDX-License-Identifier: MIT
// Functions on the tape for insertion decoders: the logits and the loss of slots (places between two words), the
// maximum over all rows of a document, and tanh.
#include "engine/nn/functions.h"
#include "engine/tape/op_record.h"

#include <algorithm>

namespace masquerade {

Tensor* tanh(Tape& t, Tensor* x, const std::string& name) {
    Tensor* y = t.declare(name, x->shape, x->dtype);
    return t.run(Record("tanh").reads({x}).makes({y}).by(tanh_forward, tanh_backward));
}

Tensor* max_rows(Tape& t, Tensor* x, Ints first, const std::string& name) {
    Tensor* y = t.declare(name, {first.count - 1, x->columns()}, x->dtype);
    return t.run(Record("max_rows").reads({x}).makes({y}).by(max_rows_forward, max_rows_backward, first));
}

ChosenLogits chosen_logits(Tape& t, Tensor* h, Tensor* w, Tensor* b, Tensor* bias, Ints groups, Ints slots, Ints tokens,
                           const std::string& name) {
    const DType a = arithmetic_of(h->dtype);
    const std::int64_t K = h->columns() / std::max<std::int64_t>(w->columns(), 1);
    Tensor *z = t.declare(name, {slots.count, K}, a), *lse = t.declare(name + ".lse", {h->rows(), K}, a);
    t.run(Record("chosen_logits")
              .reads({h, w, b, bias})
              .makes({z, lse}, 2)
              .by(chosen_logits_forward, chosen_logits_backward, groups, slots, tokens));
    return {z, lse};
}

Tensor* slot_loss(Tape& t, const ChosenLogits& logits, Tensor* mix, Tensor* place, const SlotChoices& choices,
                  bool joint, const std::string& name) {
    Tensor *z = logits.z, *lse = logits.lse;
    const std::int64_t B = choices.first.count - 1;
    Tensor *loss = t.declare(name, {B}, z->dtype),
           *base = t.declare(name + ".base", {joint ? B : lse->rows(), lse->columns()}, z->dtype),
           *inner = t.declare(name + ".inner", {z->rows()}, z->dtype);
    return t.run(Record("slot_loss")
                     .reads({z, lse, mix, place, choices.shares})
                     .makes({loss, base, inner})
                     .by(slot_loss_forward, slot_loss_backward, choices.first, choices.begin, joint)
                     .keeps({z, joint ? lse : nullptr, mix, place, choices.shares, base, inner}));
}

}  // namespace masquerade
