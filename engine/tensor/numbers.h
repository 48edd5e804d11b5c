// SPDX-License-Identifier: MIT
// The host's way to the numbers of a tensor, whatever its type and wherever it lies. On the CPU nothing is copied.
#pragma once
#include <vector>

#include "engine/tensor/buffer.h"
#include "engine/tensor/view.h"

namespace masquerade {

// f(the numbers of a tensor on the CPU), as their type has them.
template <class F>
auto with_numbers(const View& view, F f) {
    switch (view.dtype) {
        case DType::f32: return f(view.as<float>());
        case DType::bf16: return f(view.as<bfloat16>());
        case DType::f64: return f(view.as<double>());
        default: return f(view.as<complex>());
    }
}

// The i-th number of a tensor on the CPU, whatever its type (the real part of a complex one).
double number_at(const View& view, std::int64_t i);

// A tensor where the host can read and write it: itself if it lies on the CPU, otherwise a copy.
class OnHost {
  public:
    // With the numbers that the tensor holds now; all work that makes them has ended.
    explicit OnHost(const View& tensor) : OnHost(tensor, true) {}
    // For numbers to be written: what the copy holds before that is arbitrary.
    static OnHost to_write(const View& tensor) { return OnHost(tensor, false); }

    const View& view() const { return here_; }
    double operator[](std::int64_t i) const { return number_at(here_, i); }
    // Brings what was written to where the tensor lies.
    void store() const;

  private:
    OnHost(const View& tensor, bool read);
    View tensor_, here_;
    Buffer copy_;
};

// All numbers of a tensor, wherever it lies.
std::vector<double> numbers_of(const View& tensor);

// All numbers of a tensor, converted to its type.
void write_numbers(const View& to, const double* numbers);
void write_numbers(const View& to, const float* numbers);

}  // namespace masquerade
