// SPDX-License-Identifier: MIT
// The rows of one tensor from all parts of a batch (TrainOptions::parts), one part after another.
#pragma once
#include "engine/tensor/buffer.h"
#include "engine/tensor/copy.h"

namespace masquerade {

class JoinedRows {
  public:
    // Keeps a copy of the first `count` rows of a part that is not the last one. Row i is the slice with index i in the
    // first dimension.
    void keep(const View& rows, int count) { append(rows, count * bytes_of_row(rows)); }
    // Returns the kept rows and then the first `count` rows of the last part, and forgets the kept rows. The view is
    // valid until the next keep(). If no rows were kept, copies nothing and returns all rows of the last part, also
    // those from `count` on.
    View join(const View& last, int count) {
        if (used_ == 0) return last;
        append(last, count * bytes_of_row(last));
        View all = last;
        all.data = all_.data();
        all.shape.size[0] = std::int64_t(used_ / bytes_of_row(last));
        used_ = 0;
        return all;
    }

  private:
    static std::size_t bytes_of_row(const View& rows) { return rows.bytes() / std::size_t(rows.shape[0]); }
    // The memory only grows, because freeing memory of a GPU waits until all work is done.
    void append(const View& rows, std::size_t bytes) {
        if (used_ + bytes > all_.bytes()) {
            Buffer larger(2 * (used_ + bytes), rows.device);
            copy_bytes(all_.data(), rows.device, larger.data(), rows.device, used_);
            all_ = std::move(larger);
        }
        copy_bytes(rows.data, rows.device, static_cast<char*>(all_.data()) + used_, rows.device, bytes);
        used_ += bytes;
    }

    Buffer all_;
    std::size_t used_ = 0;  // bytes of the kept rows
};

}  // namespace masquerade
