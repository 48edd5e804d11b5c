// SPDX-License-Identifier: MIT
// The tensor argument of an op: a typed pointer with a shape and the path of the tensor it belongs to. It owns nothing.
#pragma once
#include "engine/base/error.h"
#include "engine/tensor/device.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace masquerade {

struct View {
    void* data = nullptr;
    DType dtype = DType::f32;
    Device device = Device::cpu;
    Shape shape;
    const char* path = "";

    explicit operator bool() const { return data != nullptr; }
    std::int64_t rows() const { return shape.rows(); }
    std::int64_t columns() const { return shape.columns(); }
    std::int64_t count() const { return shape.count(); }
    std::size_t bytes() const { return std::size_t(shape.count()) * bytes_of(dtype); }

    // The elements as type T; an absent view gives a null pointer, a wrong type an error.
    template <class T>
    T* as() const {
        if (data && dtype != dtype_of<T>)
            throw Error(
                text("tensor ", path, " ", shape, " holds ", name_of(dtype), ", read as ", name_of(dtype_of<T>)));
        return static_cast<T*>(data);
    }
};

// `count` rows of a matrix, from row `begin` on.
inline View rows_of(View v, std::int64_t begin, std::int64_t count) {
    v.data = static_cast<char*>(v.data) + std::size_t(begin * v.columns()) * bytes_of(v.dtype);
    v.shape = {count, v.columns()};
    return v;
}

// Where a backward writes: a gradient with the first-writer rule. `add` false: store, every element, zeros where
// there is nothing; true: add to what an earlier backward left. An absent gradient is not wanted and not computed.
struct Grad {
    View view;
    bool add = false;
    explicit operator bool() const { return view.data != nullptr; }
};

// Whole numbers beside the tensors (token ids, positions, rows), on the same device as they.
struct Ints {
    const int* data = nullptr;
    std::int64_t count = 0;
    int operator[](std::int64_t i) const { return data[i]; }
};

}  // namespace masquerade
