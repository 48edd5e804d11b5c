// SPDX-License-Identifier: MIT
// A copy of a matrix in the layout in which an op reads it (Parameters::freeze()). The op makes the copy when it first
// needs it, and reads the copy from then on. The matrix must not change meanwhile.
#pragma once
#include <cstdint>
#include <mutex>

#include "engine/tensor/buffer.h"
#include "engine/tensor/dtype.h"

namespace masquerade {

class PackedCopy {
  public:
    // The contents of a copy: the matrix of `rows` x `columns` numbers whose element (i, j) is at data[i * row + j *
    // column]. `layout` stands for the layout of the copy: two layouts have different addresses.
    struct Contents {
        const void *layout = nullptr, *data = nullptr;
        DType dtype = DType::f32;  // of the matrix
        std::int64_t rows = 0, columns = 0, row = 0, column = 0;
        bool operator==(const Contents& o) const {
            return layout == o.layout && data == o.data && dtype == o.dtype && rows == o.rows && columns == o.columns &&
                   row == o.row && column == o.column;
        }
    };
    // Returns the copy, which is `bytes` bytes long and aligned to 64 bytes. If there is none with these contents,
    // calls pack(void* to), which must write it. Several threads may call get() at the same time.
    template <class F>
    const void* get(const Contents& wanted, std::int64_t bytes, F pack) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!(wanted == contents_)) {
            contents_ = {};
            memory_ = Buffer(std::size_t(bytes));
            pack(memory_.data());
            contents_ = wanted;
        }
        return memory_.data();
    }

  private:
    std::mutex mutex_;
    Contents contents_;
    Buffer memory_;
};

}  // namespace masquerade
