// SPDX-License-Identifier: MIT
#include "engine/tensor/numbers.h"

#include "engine/tensor/copy.h"

namespace masquerade {

double number_at(const View& view, std::int64_t i) {
    switch (view.dtype) {
        case DType::f32: return double(view.as<float>()[i]);
        case DType::bf16: return double(float(view.as<bfloat16>()[i]));
        case DType::f64: return view.as<double>()[i];
        case DType::c128: return view.as<complex>()[i].real();
    }
    return 0;
}

OnHost::OnHost(const View& tensor, bool read) : tensor_(tensor), here_(tensor) {
    if (tensor.device == Device::cpu) return;
    copy_ = Buffer(tensor.bytes());
    here_.data = copy_.data();
    here_.device = Device::cpu;
    if (read) copy(tensor_, here_);
}

void OnHost::store() const {
    if (tensor_.device != Device::cpu) copy(here_, tensor_);
}

namespace {

template <class N>
void convert(const N* numbers, const View& to) {
    const std::int64_t n = to.count();
    auto fill = [&](auto* at) {
        using T = std::remove_pointer_t<decltype(at)>;
        for (std::int64_t i = 0; i < n; i++) {
            if constexpr (std::is_same_v<T, double> || std::is_same_v<T, complex>)
                at[i] = T(double(numbers[i]));
            else
                at[i] = T(float(numbers[i]));
        }
    };
    switch (to.dtype) {
        case DType::f32: return fill(to.as<float>());
        case DType::bf16: return fill(to.as<bfloat16>());
        case DType::f64: return fill(to.as<double>());
        case DType::c128: return fill(to.as<complex>());
    }
}

template <class N>
void convert_and_store(const N* numbers, const View& to) {
    const OnHost here = OnHost::to_write(to);
    convert(numbers, here.view());
    here.store();
}

}  // namespace

void write_numbers(const View& to, const double* numbers) { convert_and_store(numbers, to); }
void write_numbers(const View& to, const float* numbers) { convert_and_store(numbers, to); }

}  // namespace masquerade
