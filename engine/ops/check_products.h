// SPDX-License-Identifier: MIT
// Checks of the arguments of rotary and cross_entropy, except for the shapes and types that ops.h states. These ops
// call the checks on the CPU and on CUDA.
#pragma once
#include "engine/ops/check.h"

namespace masquerade {

// Checks the arguments of rotary and linear_rotary. x is the tensor that is rotated: the input of rotary, or the output
// of the linear layer in linear_rotary. check_turned() does not check the positions. If two tensors are rotated by the
// same positions, check_rotary() is called for the first, and check_turned() for the second.
inline void check_turned(const View& x, const View& rotary_table, int columns) {
    const std::int64_t D = rotary_table.columns();
    if (D % 2 || columns % D || columns > x.columns())
        throw Error("rotary ", x.path, " ", x.shape, ": ", columns, " columns in heads of ", D,
                    "; heads must be even and fill the columns");
}
inline void check_rotary(const View& x, const Ints& positions, const View& rotary_table, int columns) {
    expect_rows("rotary", "position", positions, rotary_table);
    check_turned(x, rotary_table, columns);
}

inline void check_cross_entropy(const View& h, const View& w, const Ints& targets, const View& weights,
                                double smoothing, bool weighted) {
    const char* op = "cross_entropy";
    const Ints entries = entries_on_host(targets, h);
    for (std::int64_t n = 0; n < entries.count; n++)
        if (entries[n] < 0 || entries[n] >= w.rows())
            throw Error(op, ": the target of row ", n, " of ", h.path, " is ", entries[n], ", expected in [0, ",
                        w.rows(), "), the rows of w ", w.path);
    if (!(smoothing >= 0 && smoothing < 1))
        throw Error(op, " of ", h.path, ": the label smoothing is ", smoothing, ", expected in [0, 1)");
    if (!weights && h.rows() > 0 && weighted)
        throw Error(op, " of ", h.path, ": there are no weights, expected them for total, h1, w1 and b1");
}

}  // namespace masquerade
