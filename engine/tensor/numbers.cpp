// SPDX-License-Identifier: MIT
#include "engine/tensor/numbers.h"

#include "engine/tensor/copy.h"

namespace masquerade {

double number_at(const View& view, std::int64_t i) {
    return with_numbers(view, [i](const auto* numbers) {
        if constexpr (std::is_same_v<decltype(numbers), const complex*>)
            return numbers[i].real();
        else
            return double(numbers[i]);
    });
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

ReadLater::ReadLater(const View& tensor)
    : copy_(tensor.bytes()), here_{copy_.data(), tensor.dtype, Device::cpu, tensor.shape, "read later"} {
    if (tensor.device == Device::cpu)
        copy_bytes(tensor.data, Device::cpu, copy_.data(), Device::cpu, tensor.bytes());
    else
        read_.reset(cuda_runtime().begin_read(tensor.data, tensor.bytes()));
}

double ReadLater::operator[](std::int64_t i) {
    if (read_) cuda_runtime().finish_read(read_.release(), copy_.data());
    return number_at(here_, i);
}

template <class Number>
void write_numbers(const View& to, const Number* numbers) {
    const OnHost here = OnHost::to_write(to);
    with_numbers(here.view(), [&](auto* at) {
        using T = std::remove_pointer_t<decltype(at)>;
        using Wide = std::conditional_t<std::is_same_v<T, double> || std::is_same_v<T, complex>, double, float>;
        for (std::int64_t i = 0; i < to.count(); i++) at[i] = T(Wide(numbers[i]));
    });
    here.store();
}
template void write_numbers(const View&, const double*);
template void write_numbers(const View&, const float*);

std::vector<double> numbers_of(const View& tensor) {
    const OnHost here(tensor);
    std::vector<double> all;
    all.reserve(std::size_t(tensor.count()));
    for (std::int64_t i = 0; i < tensor.count(); i++) all.push_back(here[i]);
    return all;
}

}  // namespace masquerade
