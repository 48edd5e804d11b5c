// SPDX-License-Identifier: MIT
#include "engine/math/slot_loss.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class A>
HD void store_loss(Lanes lanes, const SlotDocuments<A>& all, std::int64_t g, A* loss) {
    const A found = slot_loss_row(lanes, all, g);
    if (first(lanes)) *loss = found;
}

// Checks the shapes, then calls f(SlotDocuments<A>), where A is the type of z.
template <class F>
void for_documents(const char* op, const View& z, const View& lse, const View& mix, const View& place,
                   const Ints& first, const Ints& begin, const View& shares, bool joint, const View& loss,
                   const View& base, const View& inner, F f) {
    const DType a = z.dtype;
    const std::int64_t B = loss.count(), M = begin.count - 1, J = z.rows(), K = z.columns(), mixed = joint ? B : M;
    expect_shape(op, "loss", loss, {B}, a);
    expect_shape(op, "z", z, {shares.count(), K}, a);
    expect_shape(op, "shares", shares, {J}, a);
    expect_shape(op, "lse", lse, {M, K}, a);
    expect_shape(op, "base", base, {mixed, K}, a);
    expect_shape(op, "inner", inner, {J}, a);
    if (mix) expect_shape(op, "mix", mix, {mixed, K}, a);
    if (place) expect_shape(op, "place", place, {M}, a);
    if ((!mix && K > 1) || (place && joint))
        throw Error(text(op, ": ", seen("z", z), joint ? ", joint" : "", mix ? "" : ", no mix",
                         place ? ", a place" : "", "; expected a mix for several columns, and no place where joint"));
    expect_parts(op, "first slots", first, B, M, z);
    expect_parts(op, "first choices", begin, M, J, z);
    for_type(a, [&]<class S, class A>(Types<S, A>) {
        f(SlotDocuments<A>{z.as<A>(), lse.as<A>(), mix.as<A>(), place.as<A>(), shares.as<A>(), first.data, begin.data,
                           int(K), joint, base.as<A>(), inner.as<A>()});
    });
}

}  // namespace

void slot_loss_forward(View z, View lse, View mix, View place, Ints first, Ints begin, View shares, bool joint,
                       View loss, View base, View inner) {
    for_documents("slot_loss", z, lse, mix, place, first, begin, shares, joint, loss, base, inner, [&](auto all) {
        using A = std::remove_pointer_t<decltype(all.base)>;
        for_each_row(loss.count(), row_call<store_loss<A>>(all, Number(), by_row<A>(loss)));
    });
}

void slot_loss_backward(View dloss, View z, View lse, View mix, View place, Ints first, Ints begin, View shares,
                        bool joint, View base, View inner, Grad dz, Grad dlse, Grad dmix, Grad dplace) {
    const char* op = "slot_loss backward";
    expect_grad(op, "dz", dz, z);
    expect_grad(op, "dlse", dlse, lse);
    expect_grad(op, "dmix", dmix, mix);
    expect_grad(op, "dplace", dplace, place);
    for_documents(op, z, lse, mix, place, first, begin, shares, joint, dloss, base, inner, [&](auto all) {
        using A = std::remove_pointer_t<decltype(all.base)>;
        const SlotGradients<A> to{dz.view.as<A>(), dlse.view.as<A>(), dmix.view.as<A>(), dplace.view.as<A>(),
                                  dz.add,          dlse.add,          dmix.add,          dplace.add};
        for_each_row(dloss.count(), row_call<slot_loss_row_grad<A, Lanes>>(all, Number(), by_row<A>(dloss), to));
    });
}

}  // namespace masquerade::DEVICE
