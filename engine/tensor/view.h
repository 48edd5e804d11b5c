// SPDX-License-Identifier: MIT
// The tensor argument of an op: a typed pointer with a shape and the path of its tensor. A View does not own the
// memory.
#pragma once
#include "engine/base/error.h"
#include "engine/tensor/device.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace masquerade {

class PackedCopy;

struct View {
    void* data = nullptr;
    DType dtype = DType::f32;
    Device device = Device::cpu;
    Shape shape;
    const char* path = "";
    const void* rounded = nullptr;  // the same numbers in bf16, if the tensor has a copy in bf16 (Parameters::rounded)
    PackedCopy* packed = nullptr;   // if the matrix does not change: holds a copy for products (Parameters::freeze)

    explicit operator bool() const { return data != nullptr; }
    std::int64_t rows() const { return shape.rows(); }
    std::int64_t columns() const { return shape.columns(); }
    std::int64_t count() const { return shape.count(); }
    std::size_t bytes() const { return shape.count() * bytes_of(dtype); }
    // The address of number i.
    void* at(std::int64_t i) const { return static_cast<char*>(data) + i * std::int64_t(bytes_of(dtype)); }

    // Returns a pointer to the elements, or null if the view is empty. Throws Error if the elements do not have type T.
    template <class T>
    T* as() const {
        if (data && dtype != dtype_of<T>)
            throw Error("tensor ", path, " ", shape, " holds ", name_of(dtype), ", read as ", name_of(dtype_of<T>));
        return static_cast<T*>(data);
    }
};

// The numbers of v from number `begin` on, in this shape.
inline View part_of(View v, std::int64_t begin, const Shape& shape) {
    v.data = v.at(begin);
    v.rounded = nullptr, v.packed = nullptr;
    v.shape = shape;
    return v;
}
// Rows [begin, begin + count) of a matrix.
inline View rows_of(const View& v, std::int64_t begin, std::int64_t count) {
    return part_of(v, begin * v.columns(), {count, v.columns()});
}

// The gradient that a backward writes. If `add` is false, the backward is the first one of this step that writes the
// gradient. It stores every element, and 0 where there is no gradient. If `add` is true, the backward adds to the
// gradient that an earlier backward has stored. If `view` is empty, the gradient is not computed. If `late` is true,
// nobody reads or writes the gradient before DeviceRuntime::add_late_sums() is called, so an op on a device may compute
// partial sums only, and leave it to this call to add them.
struct Grad {
    View view;
    bool add = false, late = false;
    explicit operator bool() const { return view.data != nullptr; }
    template <class T>
    T* as() const {
        return view.as<T>();
    }
};

// Integers that accompany tensors (token ids, positions, rows), on the device of the tensors. If `data` is in device
// memory, `on_host` points to the same integers in the host's memory, where ops check them. If `on_host` is null, the
// host has no copy, and ops on a device check nothing. On the CPU, `on_host` is not used.
struct Ints {
    const int* data = nullptr;
    std::int64_t count = 0;
    const int* on_host = nullptr;
    int operator[](std::int64_t i) const { return data[i]; }
};

}  // namespace masquerade
