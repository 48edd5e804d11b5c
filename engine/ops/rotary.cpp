// SPDX-License-Identifier: MIT
#include "engine/math/row.h"
#include "engine/ops/check_products.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

struct Unrotated {};

template <class S, class A, bool add, class Lanes>
HD void turn_row(Lanes lanes, Row<Lanes, const S> x, Row<Lanes, const A> turn, A direction, Row<Lanes, S> y,
                 int columns, int D, int C) {
    rotary_row<S, A>(lanes, x, turn, direction, y, add, columns, D, C);
}

void turn(const View& x, const Ints& positions, const View& rotary_table, int columns, double direction,
          const Grad& y) {
    check_rotary(x, positions, rotary_table, columns);
    const bool in_place = x.data == y.view.data && !y.add;  // if true, y already has the columns that are not rotated
    const int D = int(rotary_table.columns()), C = in_place ? columns : int(x.columns());
    auto run = [&](auto adds) {
        for_packet_rows(x, x.rows(), [&]<class S, class A, class Lanes>(S, A, Lanes) {
            return row_call<turn_row<S, A, adds(), Lanes>>(x, chosen_row<A>(rotary_table, positions.data), A(direction),
                                                           y.view, columns, D, C);
        });
    };
    if (y.add)
        run(std::true_type{});
    else
        run(std::false_type{});
}

}  // namespace

void rotary_forward(View x, Ints positions, View rotary_table, int columns, View y) {
    turn(x, positions, rotary_table, columns, 1, Grad{y, false});
}

void rotary_backward(View dy, Ints positions, View rotary_table, int columns, Grad dx) {
    if (dx) turn(dy, positions, rotary_table, columns, -1, dx);
}

void linear_rotary_backward(View dy, View x, View w, Ints positions, View rotary_table, int columns, Grad dx, Grad dw,
                            Grad db) {
    View unrotated = dy;
    unrotated.data = workspace<Unrotated, char>(std::int64_t(dy.bytes()));
    rotary_backward(dy, positions, rotary_table, columns, {unrotated});
    linear_backward(unrotated, x, w, dx, dw, db);
}

}  // namespace masquerade::DEVICE
