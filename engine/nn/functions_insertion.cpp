// SPDX-License-Identifier: MIT
// Functions on the tape for insertion decoders: the logits and the loss of slots (places between two words), the
// maximum over all rows of a document, and tanh.
#include "engine/nn/functions.h"
#include "engine/tape/op_record.h"

namespace masquerade {

Tensor* tanh(Tape& t, Tensor* x, const std::string& name) { return run_op(t, name, tanh_forward, tanh_backward, {x}); }

Tensor* max_rows(Tape& t, Tensor* x, Ints first, const std::string& name) {
    Tensor* y = t.declare(name, {first.count - 1, x->columns()}, x->dtype);
    return t.run(Record("max_rows").reads({x}).makes({y}).by(max_rows_forward, max_rows_backward, first));
}

ChosenLogits chosen_logits(Tape& t, Tensor* h, Tensor* w, Tensor* b, Tensor* bias, Ints groups, Ints slots, Ints tokens,
                           const std::string& name) {
    Tensor* z = run_op(t, name, chosen_logits_forward, chosen_logits_backward, {h, w, b, bias}, groups, slots, tokens);
    return {z, t.records().back().out[1]};
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
