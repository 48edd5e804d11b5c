// SPDX-License-Identifier: MIT
// A named tensor with pointers to its value and its gradient. The path ("decoder.layer.3.attention.query") is its name
// in errors, traces, dumps, checkpoints and the debugger. The memory belongs to an arena or to the parameter store.
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
    bool needs_grad = false;    // true if the value depends on a parameter
    bool grad_written = false;  // true if a backward of this step has stored the gradient; the next backward adds
    bool parameter = false;
    bool retained = false;                  // true if the value is kept until the step ends
    int value_block = -1, grad_block = -1;  // numbers of the arena blocks that hold value and gradient; -1: none

    View view() const { return View{value, dtype, device, shape, path.c_str()}; }
    View grad_view() const { return View{grad, grad_dtype(), device, shape, path.c_str()}; }
    // The gradient of a parameter is a sum over a whole batch; in bf16 it would lose small terms.
    DType grad_dtype() const { return parameter ? arithmetic_of(dtype) : dtype; }
    std::int64_t rows() const { return shape.rows(); }
    std::int64_t columns() const { return shape.columns(); }
    std::size_t bytes() const { return shape.count() * bytes_of(dtype); }
};

}  // namespace masquerade
