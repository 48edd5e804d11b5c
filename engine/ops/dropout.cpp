// SPDX-License-Identifier: MIT
// Forward and backward are one map: y = x * keep / (1 - rate), with the same keep, drawn again from its name.
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class S, class A>
struct Drop {
    const S* x;
    const int *document, *position;
    Stream stream;
    std::uint32_t threshold;  // keep where the random bits are at least this
    A scale;
    S* y;
    bool add;
    int C;
    template <class Lanes>
    HD void operator()(Lanes lanes, std::int64_t n) const {
        each(lanes, (C + 3) / 4, [&](int block) {
            Four bits = stream.at(std::uint32_t(document[n]), std::uint32_t(position[n]), std::uint32_t(block));
            for (int k = 0; k < 4 && 4 * block + k < C; k++) {
                std::int64_t i = n * C + 4 * block + k;
                put(y[i], bits.v[k] >= threshold ? A(x[i]) * scale : A(0), add);
            }
        });
    }
};

void drop(const View& x, const RowNames& rows, const DropoutRule& rule, const Grad& y) {
    expect_shape("dropout", "y", y.view, x.shape, x.dtype);
    expect_count("dropout", "documents", rows.document, x.rows());
    expect_count("dropout", "positions", rows.position, x.rows());
    if (!(rule.rate >= 0 && rule.rate < 1))
        throw Error(text("dropout ", x.path, ": rate is ", rule.rate, ", expected in [0, 1)"));
    auto threshold = std::uint32_t(double(rule.rate) * 4294967296.0);
    for_type(x.dtype, [&](auto types) {
        using S = typename decltype(types)::S;
        using A = typename decltype(types)::A;
        for_each_row(x.rows(),
                     Drop<S, A>{x.as<S>(), rows.document.data, rows.position.data, rule.stream, threshold,
                                A(1 / (1 - rule.rate)), y.view.as<S>(), y.add, int(x.columns())});
    });
}

}  // namespace

void dropout_forward(View x, RowNames rows, DropoutRule rule, View y) { drop(x, rows, rule, Grad{y, false}); }

void dropout_backward(View dy, RowNames rows, DropoutRule rule, Grad dx) {
    if (dx) drop(dy, rows, rule, dx);
}

}  // namespace masquerade::DEVICE
