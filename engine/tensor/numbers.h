// SPDX-License-Identifier: MIT
// Reads and writes the numbers of a tensor from the host, for any type and any device.
#pragma once
#include <vector>

#include "engine/tensor/buffer.h"
#include "engine/tensor/view.h"

namespace masquerade {

// Calls f with a typed pointer to the numbers of a tensor on the CPU.
template <class F>
auto with_numbers(const View& view, F f) {
    switch (view.dtype) {
        case DType::f32: return f(view.as<float>());
        case DType::bf16: return f(view.as<bfloat16>());
        case DType::f64: return f(view.as<double>());
        default: return f(view.as<complex>());
    }
}

// Number i of a tensor on the CPU, for any type (the real part if complex).
double number_at(const View& view, std::int64_t i);

// A tensor that the host can access: the tensor itself if it is on the CPU, otherwise a copy.
class OnHost {
  public:
    // Copies the current numbers from the device; waits for earlier work on the device.
    explicit OnHost(const View& tensor) : OnHost(tensor, true) {}
    // For writing only: the initial content of a copy is unspecified.
    static OnHost to_write(const View& tensor) { return OnHost(tensor, false); }

    const View& view() const { return here_; }
    double operator[](std::int64_t i) const { return number_at(here_, i); }
    // Copies the numbers of view() to the tensor, if it is on another device.
    void store() const;

  private:
    OnHost(const View& tensor, bool read);
    View tensor_, here_;
    Buffer copy_;
};

// All numbers of a tensor on any device.
std::vector<double> numbers_of(const View& tensor);

// Writes all numbers of a tensor on any device, converted to its type.
void write_numbers(const View& to, const double* numbers);
void write_numbers(const View& to, const float* numbers);

}  // namespace masquerade
