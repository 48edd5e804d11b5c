// SPDX-License-Identifier: MIT
// The forward has left the gradients of its total; what is left to do is to scale them.
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S, class A>
struct Scale {
    const A* dtotal;
    const S* share;
    S* to;
    bool add;
    HD void operator()(std::int64_t i) const { put(to[i], *dtotal * A(share[i]), add); }
};

void scale(const View& dtotal, const char* from, const View& share, const char* role, const Grad& to) {
    if (!to) return;
    const char* op = "cross_entropy backward";
    if (!share)
        throw Error(text(op, ": ", role, " ", to.view.path, " is wanted, expected ", from, " from the forward"));
    expect_grad(op, role, to, share);
    for_type(share.dtype, [&]<class S, class A>(Types<S, A>) {
        for_each_point(share.count(), Scale<S, A>{dtotal.as<A>(), share.as<S>(), to.view.as<S>(), to.add});
    });
}

}  // namespace

void cross_entropy_backward(View dtotal, View h1, View w1, View b1, Grad dh, Grad dw, Grad db) {
    expect_shape("cross_entropy backward", "dtotal", dtotal, {1}, arithmetic_of(dtotal.dtype));
    scale(dtotal, "h1", h1, "dh", dh);
    scale(dtotal, "w1", w1, "dw", dw);
    scale(dtotal, "b1", b1, "db", db);
}

}  // namespace masquerade::DEVICE
