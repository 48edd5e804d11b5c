// SPDX-License-Identifier: MIT
// A tensor that owns its memory, so that its numbers outlive the steps of a tape. Decoding states consist of such
// tensors.
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
        if (buffer_.bytes() < tensor_.bytes() || buffer_.device() != device) {
            buffer_ = Buffer();
            buffer_ = Buffer(tensor_.bytes(), device);
        }
        tensor_.value = buffer_.data();
    }
    void forget() { tensor_.value = nullptr; }  // frees no memory, so that allocate() can use it again
    // Allocates the tensor with the shape, type and device of x, and copies x into it.
    void take(Tape& tape, const Tensor& x) {
        tape.touch(x);
        allocate(x.shape, x.dtype, x.device);
        masquerade::copy(x.view(), tensor_.view());
    }
    Tensor* tensor() { return tensor_.value ? &tensor_ : nullptr; }  // null if nothing was allocated
    void store(Tape& tape, Ints rows, const Tensor* x) {
        tape.touch(*x);
        store_rows(x->view(), rows, tensor_.view());
    }
    // Copies row from[i] to row to[i], for all i. A row may be in both lists: all rows are read before any is written.
    void copy(Tape& tape, Ints from, Ints to) {
        if (tensor()) store(tape, to, embedding(tape, from, tensor(), "continued"));
    }

  private:
    Tensor tensor_;
    Buffer buffer_;
};

}  // namespace masquerade
