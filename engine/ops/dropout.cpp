// SPDX-License-Identifier: MIT
// Forward and backward are the same function, y = x * keep / (1 - rate), where keep is 0 or 1. The backward draws the
// same `keep` again, because random numbers depend only on the stream, the document and position of the row, and the
// column.
#include "engine/ops/drop.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S, class A, class Lanes>
HD void drop_row(Lanes lanes, const Drop<A>& drop, std::int64_t n, Row<Lanes, const S> x, Row<Lanes, S> y, bool add,
                 int C) {
    drop.store_row(
        lanes, n, C, y, add, [](auto, auto dropped, A v) { return dropped(v); }, x);
}

void drop_rows(const View& x, const RowNames& rows, const DropoutRule& rule, const Grad& y) {
    for_packet_rows(x, x.rows(), [&]<class S, class A, class Lanes>(S, A, Lanes) {
        return row_call<drop_row<S, A, Lanes>>(checked_drop<A>("dropout", x, rows, rule), Number(), x, y, x.columns());
    });
}

}  // namespace

void dropout_forward(View x, RowNames rows, DropoutRule rule, View y) { drop_rows(x, rows, rule, Grad{y, false}); }

void dropout_backward(View dy, RowNames rows, DropoutRule rule, Grad dx) {
    if (dx) drop_rows(dy, rows, rule, dx);
}

}  // namespace masquerade::DEVICE
