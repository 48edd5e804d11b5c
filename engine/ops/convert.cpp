// SPDX-License-Identifier: MIT
// Converts between bf16 and f32, or copies without a change of type. f32 is rounded to the nearest bf16, ties to even.
// All other conversions are exact.
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class From, class To, class A>
struct Convert {
    const From* x;
    To* y;
    bool add;
    HD void operator()(std::int64_t i) const { put(y[i], A(x[i]), add); }
};

void convert(const View& x, const Grad& y) {
    for_type(x.dtype, [&]<class From, class A>(From, A) {
        const auto run = [&]<class To>(To) {
            for_each_point(x.count(), Convert<From, To, A>{x.as<From>(), y.as<To>(), y.add});
        };
        if constexpr (std::is_same_v<A, float>)
            if (y.view.dtype == DType::bf16) return run(bfloat16());
        run(A());
    });
}

}  // namespace

void convert_forward(View x, View y) { convert(x, {y}); }

void convert_backward(View dy, Grad dx) {
    if (dx) convert(dy, dx);
}

}  // namespace masquerade::DEVICE
