// SPDX-License-Identifier: MIT
// Checks of the arguments of an op. Each Error names the op, and says what was found and what was expected.
#pragma once
#include <algorithm>
#include <limits>

#include "engine/tensor/view.h"

namespace masquerade {

// Describes a view in a message: "x head.gelu is (8,128) f32".
inline std::string seen(const char* role, const View& v) {
    return text(role, " ", v.path, " is ", v.shape, " ", name_of(v.dtype));
}

inline void expect_shape(const char* op, const char* role, const View& v, const Shape& shape, DType dtype) {
    if (v.shape != shape || v.dtype != dtype)
        throw Error(op, ": ", seen(role, v), ", expected ", shape, " ", name_of(dtype));
}

// A gradient must be absent, or have the shape and type of its tensor, `like`.
inline void expect_grad(const char* op, const char* role, const Grad& g, const View& like) {
    if (g) expect_shape(op, role, g.view, like.shape, like.dtype);
}

inline void expect_count(const char* op, const char* role, const Ints& ints, std::int64_t count) {
    if (ints.count != count) throw Error(op, ": ", ints.count, " ", role, ", expected ", count);
}

// Returns the entries of `ints` at an address that the host can read. `ints` is on the device of the tensor `of`. On
// the CPU, the result is `ints` itself. On another device, the result is the copy of `ints` on the host, or an empty
// list if there is no copy. The checks below read these entries, so that every device refuses the same lists as the
// CPU.
inline Ints entries_on_host(const Ints& ints, const View& of) {
    const int* entries = of.device == Device::cpu ? ints.data : ints.on_host;
    return {entries, entries ? ints.count : 0};
}

// Each entry of `rows` must be the index of a row of the tensor `of`. If `or_none` is true, negative entries are
// allowed, too.
inline void expect_rows(const char* op, const char* role, const Ints& rows, const View& of, bool or_none = false) {
    const Ints entries = entries_on_host(rows, of);
    const int last = int(std::min<std::int64_t>(of.rows() - 1, std::numeric_limits<int>::max()));
    const int first = or_none ? std::numeric_limits<int>::min() : 0;
    int wrong = 0;  // found by a loop without branches, which the compiler vectorises
    for (std::int64_t i = 0; i < entries.count; i++) wrong |= int(entries[i] < first) | int(entries[i] > last);
    for (std::int64_t i = 0; wrong; i++)
        if (entries[i] < first || entries[i] > last)
            throw Error(op, ": ", role, " ", entries[i], " at place ", i, ", expected in [0, ", of.rows(),
                        "), the rows of ", of.path);
}

// The entries of `ints` must never decrease.
inline void expect_ascending(const char* op, const char* role, const Ints& ints, const View& of) {
    const Ints entries = entries_on_host(ints, of);
    for (std::int64_t i = 1; i < entries.count; i++)
        if (entries[i] < entries[i - 1])
            throw Error(op, ": ", role, " ", entries[i], " at place ", i, " after ", entries[i - 1],
                        ", expected them ascending");
}
// `ints` divides the range [0, end) into parts: part i is [ints[i], ints[i+1]). It must have parts + 1 entries, which
// ascend from 0 to `end`.
inline void expect_parts(const char* op, const char* role, const Ints& ints, std::int64_t parts, std::int64_t end,
                         const View& of) {
    expect_count(op, role, ints, parts + 1);
    expect_ascending(op, role, ints, of);
    const Ints entries = entries_on_host(ints, of);
    if (entries.count && (entries[0] != 0 || entries[parts] != end))
        throw Error(op, ": ", role, " from ", entries[0], " to ", entries[parts], ", expected from 0 to ", end);
}

}  // namespace masquerade
