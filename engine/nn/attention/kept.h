// SPDX-License-Identifier: MIT
// A tensor that outlives the steps of a tape, for decoding states.
#pragma once
#include "engine/nn/functions.h"
#include "engine/tensor/buffer.h"
#include "engine/tensor/copy.h"

namespace masquerade {

class Kept {
  public:
    void allocate(const Shape& shape, DType type, Device device) {
        tensor_.path = "kept";
        tensor_.shape = shape, tensor_.dtype = type, tensor_.device = device;
        buffer_ = Buffer(tensor_.bytes(), device);
        tensor_.value = buffer_.data();
    }
    // Allocates the tensor and copies x into it.
    void take(const Tensor& x) {
        allocate(x.shape, x.dtype, x.device);
        masquerade::copy(x.view(), tensor_.view());
    }
    Tensor* tensor() { return tensor_.value ? &tensor_ : nullptr; }  // null: nothing was allocated
    void store(Ints rows, const Tensor* x) { store_rows(x->view(), rows, tensor_.view()); }
    // Copies rows. A row may be both source and target, because all rows are read before any is written.
    void copy(Tape& tape, Ints from, Ints to) {
        if (tensor()) store(to, embedding(tape, from, tensor(), "continued"));
    }

  private:
    Tensor tensor_;
    Buffer buffer_;
};

}  // namespace masquerade
