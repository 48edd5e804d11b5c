// SPDX-License-Identifier: MIT
// A named tensor with pointers to its value and its gradient. The path ("decoder.layer.3.attention.query") is its name
// in errors, traces, dumps, checkpoints and the debugger. A Tensor does not own its memory, which usually belongs to
// the arena of a tape or to Parameters.
#pragma once
#include <string>

#include "engine/tensor/view.h"

namespace masquerade {

struct Tensor {
    std::string path;
    Shape shape;
    DType dtype = DType::f32;
    Device device = Device::cpu;
    void* value = nullptr;
    void* grad = nullptr;
    const void* rounded = nullptr;  // a copy of the value in bf16; null: none
    PackedCopy* packed = nullptr;   // View::packed
    bool needs_grad = false;    // true for a trained parameter, or a value that passes a gradient to such a parameter
    bool grad_written = false;  // true if a backward of this step has stored the gradient; the next backward adds
    bool parameter = false;
    bool retained = false;                  // true if the value is kept until the step ends
    int value_block = -1, grad_block = -1;  // indices of the arena blocks that hold value and gradient; -1: none

    View view() const { return View{value, dtype, device, shape, path.c_str(), rounded, packed}; }
    View grad_view() const { return View{grad, grad_dtype(), device, shape, path.c_str()}; }
    // A parameter's gradient is a sum over a whole batch. It is not stored in bf16, because rounding would lose small
    // terms.
    DType grad_dtype() const { return parameter ? arithmetic_of(dtype) : dtype; }
    std::int64_t rows() const { return shape.rows(); }
    std::int64_t columns() const { return shape.columns(); }
    std::size_t bytes() const { return shape.count() * bytes_of(dtype); }
};

}  // namespace masquerade
