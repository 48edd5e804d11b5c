// SPDX-License-Identifier: MIT
// The parameters of a model: named slices of one buffer, their gradients the same slices of another. The optimiser,
// clipping and checkpoints see the whole at once.
#pragma once
#include <deque>
#include <string>

#include "engine/tensor/buffer.h"
#include "engine/tensor/tensor.h"

namespace masquerade {

// How a parameter starts: zeros, ones, or normal numbers of a standard deviation, cut off at two of them.
struct Init {
    enum Kind { zeros, ones, normal } kind = zeros;
    double deviation = 0;
};

class Parameters {
  public:
    explicit Parameters(DType dtype = DType::f32, Device device = Device::cpu) : dtype_(dtype), device_(device) {}

    // Declares a parameter; weights of rank 2 take part in weight decay, biases and norms do not.
    Tensor* add(const std::string& path, const Shape& shape, Init init);
    // Gives all of them memory and first values. What a value is depends on (seed, path, place) alone: the same model in
    // double starts from the same numbers.
    void allocate(std::uint64_t seed);

    // Gradients: after start the next backward stores; finish zeroes those that no backward reached.
    void start_gradients();
    void finish_gradients();

    // Everything as one row, for the optimiser. `like` makes a buffer of the same length: a moment.
    View values() const { return flat(values_, "parameters"); }
    View gradients() const { return flat(gradients_, "gradients"); }
    View flat(const Buffer& buffer, const char* path) const;
    // The part of a flat view that belongs to one parameter.
    View slice(const View& flat_view, const Tensor& parameter) const;

    std::deque<Tensor>& all() { return tensors_; }
    const std::deque<Tensor>& all() const { return tensors_; }
    Tensor* find(const std::string& path);
    std::int64_t count() const;          // numbers, without the gaps of alignment
    std::int64_t length() const { return length_; }  // of the flat row, with them
    DType dtype() const { return dtype_; }
    Device device() const { return device_; }

  private:
    DType dtype_;
    Device device_;
    std::deque<Tensor> tensors_;
    std::deque<Init> inits_;
    std::deque<std::int64_t> starts_;
    std::int64_t length_ = 0;
    Buffer values_, gradients_;
};

}  // namespace masquerade
