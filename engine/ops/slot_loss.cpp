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

// Checks the arguments, except for the shapes and types that ops.h states. Then calls f(SlotDocuments<A>), where A is
// the type of z.
template <class F>
void for_documents(const char* op, const View& z, const View& lse, const View& mix, const View& place,
                   const Ints& first, const Ints& begin, const View& shares, bool joint, const View& loss,
                   const View& base, const View& inner, F f) {
    const std::int64_t B = loss.count(), M = lse.rows(), K = z.columns();
    if (base.rows() != (joint ? B : M) || (!mix && K > 1) || (place && joint))
        throw Error(op, ": ", seen("z", z), ", ", seen("base", base), joint ? ", joint" : "", mix ? "" : ", no mix",
                    place ? ", a place" : "", "; expected ", joint ? B : M,
                    " rows of base, a mix for several columns, and no place where joint");
    expect_parts(op, "first slots", first, B, M, z);
    expect_parts(op, "first choices", begin, M, z.rows(), z);
    for_latent(z, [&]<class A>(A) {
        f(SlotDocuments<A>{z.as<A>(), lse.as<A>(), mix.as<A>(), place.as<A>(), shares.as<A>(), first.data, begin.data,
                           int(K), joint, base.as<A>(), inner.as<A>()});
    });
}

}  // namespace

void slot_loss_forward(View z, View lse, View mix, View place, Ints first, Ints begin, View shares, bool joint,
                       View loss, View base, View inner) {
    for_documents("slot_loss", z, lse, mix, place, first, begin, shares, joint, loss, base, inner,
                  [&]<class A>(const SlotDocuments<A>& all) {
                      for_each_row(loss.count(), row_call<store_loss<A>>(all, Number(), loss));
                  });
}

void slot_loss_backward(View dloss, View z, View lse, View mix, View place, Ints first, Ints begin, View shares,
                        bool joint, View base, View inner, Grad dz, Grad dlse, Grad dmix, Grad dplace) {
    for_documents("slot_loss backward", z, lse, mix, place, first, begin, shares, joint, dloss, base, inner,
                  [&]<class A>(const SlotDocuments<A>& all) {
                      const SlotGradients<A> to{dz.as<A>(), dlse.as<A>(), dmix.as<A>(), dplace.as<A>(),
                                                dz.add,     dlse.add,     dmix.add,     dplace.add};
                      for_each_row(dloss.count(), row_call<slot_loss_row_grad<A, Lanes>>(all, Number(), dloss, to));
                  });
}

}  // namespace masquerade::DEVICE
