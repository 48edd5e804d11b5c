// SPDX-License-Identifier: MIT
// Functions on the tape for the losses of tokens.
#include "engine/nn/functions.h"
#include "engine/tape/op_record.h"

namespace masquerade {
namespace {
struct CrossEntropyAttributes {
    Ints targets;
    double smoothing;
    int h1, w1, b1;  // indices in Record::out of the gradients of h, w and b; 0 if the gradient is not computed
};

// Returns an output of a cross_entropy record, or an empty view if `output` is 0. The outputs are the total loss, the
// loss of each row, and lse. The gradients of the total loss with respect to h, w and b follow, if they are needed.
View share(const Record& r, int output) { return output > 0 ? r.y(output) : View{}; }
void cross_entropy_record_forward(const Record& r) {
    const auto& a = r.as<CrossEntropyAttributes>();
    cross_entropy_forward(r.x(0), r.x(1), r.x(2), a.targets, r.x(3), a.smoothing, r.y(1), r.y(2), r.y(0),
                          share(r, a.h1), share(r, a.w1), share(r, a.b1));
}
void cross_entropy_record_backward(const Record& r) {
    const auto& a = r.as<CrossEntropyAttributes>();
    const Grad dh = r.dx(0), dw = r.dx(1), db = r.dx(2);
    cross_entropy_backward(r.dy(), share(r, a.h1), share(r, a.w1), share(r, a.b1), dh, dw, db);
}
void token_losses_record_forward(const Record& r) {
    const View absent;
    cross_entropy_forward(r.x(0), r.x(1), r.x(2), r.as<Ints>(), absent, 0, r.y(0), r.y(1), absent, absent, absent,
                          absent);
}

}  // namespace

Tensor* cross_entropy(Tape& t, Tensor* h, Tensor* w, Tensor* b, Ints targets, Tensor* weights, const std::string& name,
                      Tensor** losses, double smoothing) {
    DType a = arithmetic_of(h->dtype);
    Tensor *total = t.declare(name, {1}, a), *loss = t.declare(name + ".losses", {h->rows()}, a),
           *lse = t.declare(name + ".lse", {h->rows()}, a);
    Record r = Record("cross_entropy")
                   .reads({h, w, b, weights})
                   .makes({total, loss, lse})
                   .by(cross_entropy_record_forward, cross_entropy_record_backward);
    auto share = [&](const Tensor* of, const char* suffix, DType type) {
        if (!of || !of->needs_grad) return 0;
        r.out.push_back(t.declare(name + suffix, of->shape, type));
        r.keep.push_back(r.out.back());
        return int(r.out.size()) - 1;
    };
    const int h1 = share(h, ".h1", h->dtype), w1 = share(w, ".w1", a), b1 = share(b, ".b1", a);
    r.with(CrossEntropyAttributes{targets, smoothing, h1, w1, b1});
    if (losses) *losses = loss;
    return t.run(std::move(r));
}

Tensor* token_losses(Tape& t, Tensor* h, Tensor* w, Tensor* b, Ints targets, const std::string& name) {
    DType a = arithmetic_of(h->dtype);
    Tensor *loss = t.declare(name, {h->rows()}, a), *lse = t.declare(name + ".lse", {h->rows()}, a);
    return t.run(
        Record("token_losses").reads({h, w, b}).makes({loss, lse}).by(token_losses_record_forward, nullptr, targets));
}

Tensor* weighted_sum(Tape& t, Tensor* x, Tensor* weights, const std::string& name) {
    return run_op(t, name, weighted_sum_forward, weighted_sum_backward, {x, weights});
}

}  // namespace masquerade
