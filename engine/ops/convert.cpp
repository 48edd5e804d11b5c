// SPDX-License-Identifier: MIT
// Converts between bf16 and f32, or copies without a change of type. f32 is rounded to the nearest bf16, ties to even.
// All other conversions are exact.
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

template <class From, class To>
struct Convert {
    const From* x;
    To* y;
    bool add;
    HD void operator()(std::int64_t i) const {
        if constexpr (std::is_same_v<To, bfloat16>)
            put(y[i], float(x[i]), add);
        else
            put(y[i], To(x[i]), add);
    }
};

template <class From, class To>
void run(const View& x, const Grad& y) {
    for_each_point(x.count(), Convert<From, To>{x.as<From>(), y.view.as<To>(), y.add});
}

void convert(const View& x, const Grad& y) {
    for_type(x.dtype, [&]<class S, class A>(S, A) {
        if constexpr (std::is_same_v<A, float>) {
            if (y.view.dtype == DType::bf16)
                run<S, bfloat16>(x, y);
            else
                run<S, float>(x, y);
        } else {
            run<S, S>(x, y);
        }
    });
}

}  // namespace

void convert_forward(View x, View y) { convert(x, {y}); }

void convert_backward(View dy, Grad dx) {
    if (dx) convert(dy, dx);
}

}  // namespace masquerade::DEVICE
