// SPDX-License-Identifier: MIT
// A tensor of any type for the tests of single ops. Its numbers are read and written as complex numbers, whatever the
// type is.
#pragma once
#include "engine/tensor/view.h"

#include <vector>

namespace masquerade {

struct Values {
    DType dtype;
    Shape shape;
    std::vector<char> bytes;

    Values(DType type, Shape size, double fill = 0) : dtype(type), shape(size) {
        bytes.resize(std::size_t(size.count()) * bytes_of(type));
        for (std::int64_t i = 0; i < count(); i++) set(i, fill);
    }
    // Returns numbers in [-scale, scale] that bf16 can represent exactly. They are the same for every type.
    static Values random(DType type, Shape size, unsigned salt, double scale = 1) {
        Values v(type, size);
        for (std::int64_t i = 0; i < v.count(); i++) {
            salt = salt * 1664525u + 1013904223u;
            v.set(i, double(float(bfloat16(float(scale * (double(salt >> 8) / (1 << 23) - 1))))));
        }
        return v;
    }

    std::int64_t count() const { return shape.count(); }
    View view(const char* path = "a tensor") { return {bytes.data(), dtype, Device::cpu, shape, path}; }
    Grad grad(bool add = false) { return {view("a gradient"), add}; }
    template <class T>
    T* as() {
        return reinterpret_cast<T*>(bytes.data());
    }

    void set(std::int64_t i, complex x) {
        if (dtype == DType::f32) as<float>()[i] = float(x.real());
        if (dtype == DType::bf16) as<bfloat16>()[i] = bfloat16(float(x.real()));
        if (dtype == DType::f64) as<double>()[i] = x.real();
        if (dtype == DType::c128) as<complex>()[i] = x;
    }
    complex get(std::int64_t i) const {
        Values& v = const_cast<Values&>(*this);
        if (dtype == DType::f32) return v.as<float>()[i];
        if (dtype == DType::bf16) return double(float(v.as<bfloat16>()[i]));
        if (dtype == DType::f64) return v.as<double>()[i];
        return v.as<complex>()[i];
    }
    double operator[](std::int64_t i) const { return get(i).real(); }
};

// Returns the largest absolute difference between a and b, divided by the largest absolute value of b; NaN if any
// number is NaN.
inline double difference(const Values& a, const Values& b) {
    double worst = 0, scale = 1e-30;
    for (std::int64_t i = 0; i < a.count(); i++) {
        double d = std::abs(a[i] - b[i]), size = std::abs(b[i]);
        worst = d > worst || d != d ? d : worst;
        scale = size > scale ? size : scale;
    }
    return worst / scale;
}

// dot(cotangent, y) is the scalar whose gradient a test checks.
inline complex dot(const Values& cotangent, const Values& y) {
    complex s = 0;
    for (std::int64_t i = 0; i < y.count(); i++) s += cotangent.get(i) * y.get(i);
    return s;
}

// Returns the gradient by the complex step, im f(x + i h) / h, for one number of x at a time.
template <class F>
Values complex_step(Values& x, F f) {
    const double h = 1e-30;
    Values gradient(DType::f64, x.shape);
    for (std::int64_t i = 0; i < x.count(); i++) {
        complex before = x.get(i);
        x.set(i, before + complex(0, h));
        gradient.set(i, complex(f()).imag() / h);
        x.set(i, before);
    }
    return gradient;
}

}  // namespace masquerade
