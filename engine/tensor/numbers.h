// SPDX-License-Identifier: MIT
// Reads and writes the numbers of a tensor from the host, for any type and any device.
#pragma once
#include <memory>
#include <vector>

#include "engine/tensor/buffer.h"
#include "engine/tensor/runtime.h"
#include "engine/tensor/view.h"

namespace masquerade {

// Calls f with a typed pointer to the numbers of a tensor on the CPU, and returns the result of f.
template <class F>
auto with_numbers(const View& view, F f) {
    switch (view.dtype) {
        case DType::f32: return f(view.as<float>());
        case DType::bf16: return f(view.as<bfloat16>());
        case DType::f64: return f(view.as<double>());
        default: return f(view.as<complex>());
    }
}

// Returns number i of a tensor on the CPU, converted to double; of a complex number, returns the real part.
double number_at(const View& view, std::int64_t i);

// Makes a tensor accessible to the host: uses the tensor itself if it is on the CPU, otherwise a copy on the CPU.
class OnHost {
  public:
    // If the tensor is not on the CPU, waits until its device has finished all earlier work, and copies the numbers to
    // the CPU.
    explicit OnHost(const View& tensor) : OnHost(tensor, true) {}
    // For code that writes all numbers and then calls store(): does not copy the numbers from the device, so view()
    // may contain anything at first.
    static OnHost to_write(const View& tensor) { return OnHost(tensor, false); }

    const View& view() const { return here_; }
    double operator[](std::int64_t i) const { return number_at(here_, i); }
    // Copies the numbers of view() back to the tensor. Does nothing if the tensor is on the CPU.
    void store() const;

  private:
    OnHost(const View& tensor, bool read);
    View tensor_, here_;
    Buffer copy_;
};

// Reads the numbers of a tensor later, so that the host need not wait for the device now. The numbers are those that
// the tensor has after all work that was requested before the constructor is called. The constructor requests a copy
// and does not wait. operator[] waits until the copy has arrived, but not for work that was requested after the copy.
class ReadLater {
  public:
    explicit ReadLater(const View& tensor);
    double operator[](std::int64_t i);

  private:
    struct Forget {
        void operator()(DeviceRead* read) const { cuda_runtime().finish_read(read, nullptr); }
    };
    Buffer copy_;
    View here_;                                 // the numbers in copy_
    std::unique_ptr<DeviceRead, Forget> read_;  // null if the copy has arrived
};

// Returns all numbers of a tensor on any device, converted to double; of complex numbers, returns the real parts.
std::vector<double> numbers_of(const View& tensor);

// Writes to.count() numbers to a tensor on any device. The numbers are converted to the type of the tensor.
template <class Number>  // double or float
void write_numbers(const View& to, const Number* numbers);

}  // namespace masquerade
