// SPDX-License-Identifier: MIT
#include "engine/math/row.h"
#include "engine/ops/check_products.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S, class A, bool add>
struct Turn {
    const S* x;
    const int* position;
    const A* turns;
    A direction;
    S* y;
    int columns, D, C;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        rotary_row(lanes, x + n * C, turns + std::int64_t(position[n]) * D, direction, y + n * C, add, columns, D, C);
    }
};

void turn(const View& x, const Ints& positions, const View& turns, int columns, double direction, const Grad& y) {
    check_rotary(x, positions, turns, columns);
    expect_shape("rotary", "y", y.view, x.shape, x.dtype);
    const std::int64_t D = turns.columns();
    for_type(x.dtype, [&]<class S, class A>(Types<S, A>) {
        auto run = [&](auto adds) {
            for_each_row(x.rows(), Turn<S, A, adds()>{x.as<S>(), positions.data, turns.as<A>(), A(direction),
                                                      y.view.as<S>(), columns, int(D), int(x.columns())});
        };
        if (y.add)
            run(std::true_type{});
        else
            run(std::false_type{});
    });
}

}  // namespace

void rotary_forward(View x, Ints positions, View turns, int columns, View y) {
    turn(x, positions, turns, columns, 1, Grad{y, false});
}

void rotary_backward(View dy, Ints positions, View turns, int columns, Grad dx) {
    if (dx) turn(dy, positions, turns, columns, -1, dx);
}

}  // namespace masquerade::DEVICE
