// SPDX-License-Identifier: MIT
// Latents and losses.
#include "engine/nn/functions.h"

namespace masquerade {
namespace {
struct CrossEntropyAttributes {
    Ints targets;
    double smoothing;
    int h1, w1, b1;  // which output each is, 0 where it is absent
};
}  // namespace

// The records' functions: named, so that a debugger shows and breaks on them.
namespace record {

void normalise_forward(const Record& r) { masquerade::normalise_forward(r.x(), r.as<int>(), r.y(0), r.y(1)); }
void normalise_backward(const Record& r) {
    masquerade::normalise_backward(r.dy(), r.y(0), r.y(1), r.as<int>(), r.dx());
}

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
    masquerade::cross_entropy_forward(r.x(0), r.x(1), r.x(2), a.targets, r.x(3), a.smoothing, r.y(1), r.y(2),
                                      r.y(0), share(r, a.h1), share(r, a.w1), share(r, a.b1));
}
void cross_entropy_backward(const Record& r) {
    const auto& a = r.as<CrossEntropyAttributes>();
    Grad dh = r.dx(0), dw = r.dx(1), db = r.dx(2);
    masquerade::cross_entropy_backward(r.dy(), share(r, a.h1), share(r, a.w1), share(r, a.b1), dh, dw, db);
}
void token_losses_forward(const Record& r) {
    const View absent;
    masquerade::cross_entropy_forward(r.x(0), r.x(1), r.x(2), r.as<Ints>(), absent, 0, r.y(0),
                                      r.y(1), absent, absent, absent, absent);
}

void weighted_sum_forward(const Record& r) { masquerade::weighted_sum_forward(r.x(0), r.x(1), r.y()); }
void weighted_sum_backward(const Record& r) { masquerade::weighted_sum_backward(r.dy(), r.x(1), r.dx(0)); }

}  // namespace record

Tensor* normalise(Tape& t, Tensor* x, const std::string& name, int heads) {
    Tensor *y = t.declare(name, x->shape, x->dtype),
           *inverse = t.declare(name + ".inverse", {x->rows(), heads}, arithmetic_of(x->dtype));
    return t.run(Record("normalise").reads({x}).makes({y, inverse}).keeps({y, inverse})
              .by(record::normalise_forward, record::normalise_backward, heads));
}

Tensor* vmf_sample(Tape& t, Tensor* mu, Tensor* w, Tensor* e, const std::string& name) {
    return t.run(Record("vmf_sample").reads({mu, w, e}).makes({t.declare(name, mu->shape, mu->dtype)}).keeps({mu, w, e})
              .by(record::vmf_sample_forward, record::vmf_sample_backward));
}

Tensor* gaussian_sample(Tape& t, Tensor* x, Tensor* e, const std::string& name) {
    return t.run(Record("gaussian_sample").reads({x, e}).makes({t.declare(name, e->shape, x->dtype)}).keeps({x, e})
              .by(record::gaussian_sample_forward, record::gaussian_sample_backward));
}

Tensor* gaussian_kl(Tape& t, Tensor* x, const std::string& name) {
    return t.run(Record("gaussian_kl").reads({x}).makes({t.declare(name, {x->rows()}, x->dtype)}).keeps({x})
              .by(record::gaussian_kl_forward, record::gaussian_kl_backward));
}

Tensor* cross_entropy(Tape& t, Tensor* h, Tensor* w, Tensor* b, Ints targets, Tensor* weights,
                      const std::string& name, Tensor** losses, double smoothing) {
    DType a = arithmetic_of(h->dtype);
    Tensor *total = t.declare(name, {1}, a), *loss = t.declare(name + ".losses", {h->rows()}, a),
           *lse = t.declare(name + ".lse", {h->rows()}, a);
    Record r = Record("cross_entropy").reads({h, w, b, weights}).makes({total, loss, lse})
              .by(record::cross_entropy_forward, record::cross_entropy_backward);
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
    return t.run(Record("token_losses").reads({h, w, b}).makes({loss, lse})
              .by(record::token_losses_forward, nullptr, targets));
}

Tensor* weighted_sum(Tape& t, Tensor* x, Tensor* weights, const std::string& name) {
    return t.run(Record("weighted_sum").reads({x, weights}).makes({t.declare(name, {1}, x->dtype)}).keeps({weights})
              .by(record::weighted_sum_forward, record::weighted_sum_backward));
}

}  // namespace masquerade
