// SPDX-License-Identifier: MIT
// The checks at the door of an op. Each names the op, the path of the tensor and both shapes.
#pragma once
#include "engine/tensor/view.h"

namespace masquerade {

// " is (8,128) f32": a view as messages show it.
inline std::string seen(const char* role, const View& v) {
    return text(role, " ", v.path, " is ", v.shape, " ", name_of(v.dtype));
}

inline void expect_same_shape(const char* op, const char* role_a, const View& a, const char* role_b, const View& b) {
    if (a.shape != b.shape || a.dtype != b.dtype)
        throw Error(text(op, ": ", seen(role_a, a), " but ", seen(role_b, b), "; they must be alike"));
}

inline void expect_shape(const char* op, const char* role, const View& v, const Shape& shape, DType dtype) {
    if (v.shape != shape || v.dtype != dtype)
        throw Error(text(op, ": ", seen(role, v), ", expected ", shape, " ", name_of(dtype)));
}

// A gradient that is wanted must look like the tensor it belongs to; that of a weight matrix is of type A.
inline void expect_grad(const char* op, const char* role, const Grad& g, const View& like) {
    if (g) expect_shape(op, role, g.view, like.shape, like.dtype);
}
inline void expect_weight_grad(const char* op, const char* role, const Grad& g, const View& like) {
    if (g) expect_shape(op, role, g.view, like.shape, arithmetic_of(like.dtype));
}

inline void expect_count(const char* op, const char* role, const Ints& ints, std::int64_t count) {
    if (ints.count != count) throw Error(text(op, ": ", ints.count, " ", role, ", expected ", count));
}

// Every entry names a row of `of`; or none, below 0, where that has a meaning. On CUDA they are out of reach here.
inline void expect_rows(const char* op, const char* role, const Ints& rows, const View& of, bool or_none = false) {
    if (of.device != Device::cpu) return;
    for (std::int64_t i = 0; i < rows.count; i++)
        if (rows[i] >= of.rows() || (rows[i] < 0 && !or_none))
            throw Error(text(op, ": ", role, " ", rows[i], " at place ", i, ", expected in [0, ", of.rows(),
                             "), the rows of ", of.path));
}

}  // namespace masquerade
